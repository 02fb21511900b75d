"""A member of a consumer group through aiokafka."""

from __future__ import annotations

import asyncio
import signal
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition  # noqa: E402
from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: E402
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: E402
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: E402
from aiokafka.errors import KafkaError  # noqa: E402

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Says what changes."""

    async def on_partitions_assigned(self, assigned: Any) -> None:
        say("assigned " + (",".join(str(each.partition) for each in assigned) or "-"))

    async def on_partitions_revoked(self, revoked: Any) -> None:
        say("revoked " + (",".join(str(each.partition) for each in revoked) or "-"))


async def read_and_commit(consumer: Any) -> None:
    following: dict[TopicPartition, int] = {}
    for partition, records in (await consumer.getmany(timeout_ms=100, max_records=50)).items():
        for record in records:
            say(f"record {record.partition} {record.offset} {record.value.decode()}")
            following[partition] = record.offset + 1
    if not following:
        return
    try:
        await consumer.commit(following)
    except KafkaError as error:
        say(f"uncommitted {type(error).__name__}")
        return
    for partition, offset in following.items():
        say(f"committed {partition.partition} {offset}")


async def run(settings: dict[str, str]) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"],
        group_id=settings["group.id"],
        group_instance_id=settings.get("group.instance.id"),
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        max_poll_interval_ms=int(settings["max.poll.interval.ms"]),
        metadata_max_age_ms=int(settings["metadata.max.age.ms"]),
        rebalance_timeout_ms=int(settings["max.poll.interval.ms"]),
        partition_assignment_strategy=(ASSIGNORS[settings["partition.assignment.strategy"]],),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    consumer.subscribe([settings["topic"]], listener=Listener())
    await consumer.start()
    while not leaving.is_set():
        await read_and_commit(consumer)
    await consumer.stop()
    say("left")


def main(words: list[str]) -> None:
    try:
        asyncio.run(run(dict(word.split("=", 1) for word in words)))
    except KafkaError as error:
        say(f"failed {type(error).__name__} {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
