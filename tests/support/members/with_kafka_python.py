"""A member of a consumer group through kafka-python."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

import kafka  # noqa: E402
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor  # noqa: E402
from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: E402
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: E402
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: E402
from kafka.errors import KafkaError, RetriableError, UnknownBrokerIdError  # noqa: E402
from kafka.structs import OffsetAndMetadata, TopicPartition  # noqa: E402

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


PASSING = (RetriableError, UnknownBrokerIdError)
"""What ``poll`` lets out when it looks for the coordinator and meets a broker that has just died; the next
``poll`` asks another broker."""


class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Says what changes."""

    def __init__(self, assignor: Any) -> None:
        self._assignor = assignor

    def on_partitions_lost(self, lost: Any) -> None:
        """kafka-python would go on claiming them: a cooperative leader then keeps some from a new member
        until they are given up, and nobody who has lost them ever does that."""
        self._assignor.member_assignment = None
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, assigned: Any) -> None:
        say("assigned " + (",".join(str(each.partition) for each in assigned) or "-"))

    def on_partitions_revoked(self, revoked: Any) -> None:
        say("revoked " + (",".join(str(each.partition) for each in revoked) or "-"))


class Leaving(Exception):
    """SIGTERM."""


def leave(number: int, frame: object) -> None:
    raise Leaving


def read_and_commit(consumer: Any) -> None:
    following: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, records in consumer.poll(timeout_ms=100, max_records=50).items():
        for record in records:
            say(f"record {record.partition} {record.offset} {record.value.decode()}")
            following[partition] = OffsetAndMetadata(record.offset + 1, "", -1)
    if not following:
        return
    try:
        consumer.commit(following, timeout_ms=20_000)
    except KafkaError as error:
        say(f"uncommitted {type(error).__name__}")
        return
    for partition, offset in following.items():
        say(f"committed {partition.partition} {offset.offset}")


def main(words: list[str]) -> None:
    settings = dict(word.split("=", 1) for word in words)
    assignor = ASSIGNORS[settings["partition.assignment.strategy"]]()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"].split(","),
        group_id=settings["group.id"],
        group_instance_id=settings.get("group.instance.id"),
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        max_poll_interval_ms=int(settings["max.poll.interval.ms"]),
        metadata_max_age_ms=int(settings["metadata.max.age.ms"]),
        partition_assignment_strategy=[assignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    signal.signal(signal.SIGTERM, leave)
    try:
        consumer.subscribe([settings["topic"]], listener=Listener(assignor))
        while True:
            try:
                read_and_commit(consumer)
            except PASSING as error:
                say(f"unpolled {type(error).__name__}")
    except Leaving:
        consumer.close()
        say("left")
    except KafkaError as error:
        say(f"failed {type(error).__name__} {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
