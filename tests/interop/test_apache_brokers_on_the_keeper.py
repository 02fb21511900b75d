"""Apache's brokers, unmodified, on the built-in keeper: topics, deaths, and the keeper's own death."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.processes.apache import ApacheBroker
from support.processes.broker_process import BrokerProcess, wait_all_usable
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until
from support.zookeeper.keeper import LIKE_THE_EMBEDDED, KeeperProcess

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

PARTITIONS = 12
RECORDS = 600
KINDS: dict[int, type[BrokerProcess]] = {1: ApacheBroker, 2: ApacheBroker, 3: OttlaBroker}


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[KeeperProcess]:
    with KeeperProcess(tmp_path / "keeper", *LIKE_THE_EMBEDDED, sync=True) as process:
        yield process


def write(bootstrap: str, first: int) -> None:
    """Records that all replicas in sync have."""
    refused: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for number in range(first, first + RECORDS):
        value = str(number).encode()
        producer.produce(
            "kept", value, partition=number % PARTITIONS, on_delivery=lambda e, m: e and refused.append(e)
        )
    assert producer.flush(60) == 0
    assert refused == []


def read(bootstrap: str, count: int) -> set[int]:
    """All that is there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition("kept", number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found: set[int] = set()

    def all_came() -> bool:
        found.update(
            int(each.value() or b"-1") for each in consumer.consume(500, timeout=1) if not each.error()
        )
        return len(found) >= count

    wait_until(all_came, lambda: f"{count} records are read, {len(found)} so far", 60)
    consumer.close()
    return found


@pytest.mark.full("two Apache brokers of its own, killed, and the keeper as well")
def test_records_outlive_the_death_of_a_broker_and_of_the_keeper(
    tmp_path: Path, keeper: KeeperProcess, jars: Path
) -> None:
    brokers = {
        number: kind(number, keeper.connect, None, tmp_path / f"broker-{number}")
        for number, kind in KINDS.items()
    }
    with ExitStack() as stack:
        for broker in brokers.values():
            stack.callback(broker.stop)
            broker.launch()
        wait_all_usable(brokers.values())
        bootstrap = ",".join(broker.address for broker in brokers.values())
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic("kept", PARTITIONS, 3)]).values():
            made.result(30)
        write(bootstrap, 0)

        brokers[1].kill()
        write(bootstrap, RECORDS)
        keeper.kill()
        keeper.start()
        brokers[1].restart()
        write(bootstrap, 2 * RECORDS)

        assert read(bootstrap, 3 * RECORDS) == set(range(3 * RECORDS))
