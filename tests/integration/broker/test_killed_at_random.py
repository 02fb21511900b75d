"""kill -9 at random moments under load: the broker always starts again, clean, with all it acknowledged."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.processes.ottla_broker import OttlaBroker, ottla_brokers
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroots

pytestmark = pytest.mark.java

TOPIC, PARTITIONS = "survivors", 3
IN_FLIGHT_MAX = 2_000
SMALL_SEGMENTS = {"log.segment.bytes": 200_000, "log.index.interval.bytes": 1_000}
ALARMS = ("CRITICAL", "Traceback", "internal error", "corrupt", "log directory offline", "the start failed")


class Load:
    """An idempotent producer that never rests; what was acknowledged is remembered by its offset."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[KafkaError] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 50_000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        self.acknowledged[partition, offset] = value

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            if len(self._producer) >= IN_FLIGHT_MAX:
                self._producer.poll(0.05)
                continue
            value = b"%012d" % number + b"x" * (number * 37 % 900)
            self._producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=self._delivered)
            self._producer.poll(0.0005)
            number += 1

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.flush(60)


def everything(broker: OttlaBroker) -> dict[tuple[int, int], bytes]:
    """All records of the topic, by partition and offset."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "reader", "log_level": 0})
    places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    ends = {place.partition: consumer.get_watermark_offsets(place, timeout=30)[1] for place in places}
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: dict[tuple[int, int], bytes] = {}

    def have_all() -> bool:
        for message in consumer.consume(10_000, 1.0):
            found[message.partition(), message.offset()] = message.value()
        return len(found) >= sum(ends.values())

    wait_until(have_all, "every record is read", 60)
    consumer.close()
    return found


@pytest.fixture
def broker(chroots: Chroots, tmp_path: Path) -> Iterator[OttlaBroker]:
    one = OttlaBroker(1, chroots.make().connect, log_dir=tmp_path / "data", **SMALL_SEGMENTS)
    with ottla_brokers(one):
        yield one


def test_a_broker_killed_at_random_always_starts_again_with_all_it_acknowledged(
    broker: OttlaBroker, long_form: bool
) -> None:
    kills = 50 if long_form else 3
    chance = random.Random(20_26)
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    with Load(broker.address) as load:
        for _ in range(kills):
            before = len(load.acknowledged)
            wait_until(lambda: len(load.acknowledged) > before + 100, "records are taken again", 60)  # noqa: B023
            threading.Event().wait(chance.random() * 0.5)
            broker.kill()
            broker.restart()
    found = everything(broker)
    log = broker.log_text()

    assert not load.failures
    assert {place: found.get(place) for place in load.acknowledged} == load.acknowledged
    values = list(found.values())
    assert len(set(values)) == len(values), "nothing is written twice"
    for partition in range(PARTITIONS):
        of_partition = [found[place] for place in sorted(found) if place[0] == partition]
        assert of_partition == sorted(of_partition, key=lambda value: value[:12]), "order is kept"
    assert log.count("started broker=1") == kills + 1
    assert not [line for line in log.splitlines() if any(alarm in line for alarm in ALARMS)]
