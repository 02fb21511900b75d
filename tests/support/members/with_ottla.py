"""A member of a consumer group through Ottla's own client."""

from __future__ import annotations

import signal
import sys

from ottla.client.blocking.client import Client
from ottla.client.blocking.group import GroupConsumer
from ottla.client.config import ConsumerConfig
from ottla.client.errors import ClientError
from ottla.client.group.config import MembershipConfig
from ottla.model.ids import TopicPartition


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Leaving(Exception):
    """SIGTERM."""


def leave(number: int, frame: object) -> None:
    raise Leaving


class Member:
    """Reads and commits, and tells how its share changes."""

    def __init__(self, consumer: GroupConsumer) -> None:
        self._consumer = consumer

    def tell_changes(self) -> None:
        changes = self._consumer.changes()
        for word, partitions in (("revoked", changes.revoked | changes.lost), ("assigned", changes.assigned)):
            if partitions:
                say(f"{word} {','.join(str(each.partition) for each in partitions)}")

    def read_and_commit(self) -> None:
        found = self._consumer.poll(100, 50)
        self.tell_changes()
        following: dict[TopicPartition, int] = {}
        for partition, records in found.items():
            for record in records:
                say(f"record {partition.partition} {record.offset} {(record.value or b'').decode()}")
                following[partition] = record.offset + 1
        if not following:
            return
        try:
            self._consumer.commit(following)
        except ClientError as error:
            say(f"uncommitted {type(error).__name__}")
            return
        for partition, offset in following.items():
            say(f"committed {partition.partition} {offset}")


def main(words: list[str]) -> None:
    settings = dict(word.split("=", 1) for word in words)
    membership = MembershipConfig(
        group_instance_id=settings.get("group.instance.id"),
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        max_poll_interval_ms=int(settings["max.poll.interval.ms"]),
        partition_assignment_strategy=(settings["partition.assignment.strategy"],),
        enable_auto_commit=False,
    )
    config = ConsumerConfig(auto_offset_reset="earliest", fetch_max_wait_ms=200)
    signal.signal(signal.SIGTERM, leave)
    with Client(settings["bootstrap.servers"]) as client:
        consumer = client.group_consumer(settings["group.id"], [settings["topic"]], config, membership)
        member = Member(consumer)
        try:
            while True:
                member.read_and_commit()
        except Leaving:
            consumer.close()
            say("left")
        except ClientError as error:
            say(f"failed {type(error).__name__} {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
