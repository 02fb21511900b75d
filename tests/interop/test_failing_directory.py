"""A log directory of an Ottla broker fails: Apache's controller moves its leaderships, the rest goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mixed import QUIET, MixedCluster, read_all
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

OTTLA, APACHE = 1, 2


@pytest.fixture
def cluster(tmp_path: Path, jars: object) -> Iterator[MixedCluster]:
    running = MixedCluster(tmp_path, {APACHE: "apache", OTTLA: "ottla"}, offsets_topic_replication_factor=1)
    running.brokers[OTTLA].change_settings(log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def send(cluster: MixedCluster, topic: str, partition: int, values: list[str]) -> None:
    from confluent_kafka import Producer

    failed: list[str] = []
    one_by_one = {"batch.num.messages": 1, "linger.ms": 0}
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **one_by_one, **QUIET}
    )
    for value in values:
        producer.produce(
            topic,
            value,
            partition=partition,
            on_delivery=lambda error, _: failed.append(str(error)) if error is not None else None,
        )
    assert producer.flush(60) == 0
    assert failed == []


def home_of(cluster: MixedCluster, partition: str) -> Path:
    [found] = [
        path for path in cluster.directory.glob(f"*/{partition}") if path.parent.name in ("one", "two")
    ]
    return found.parent


def test_a_failing_directory_takes_only_its_own_partitions_along(cluster: MixedCluster) -> None:
    cluster.elect_controller(APACHE)
    cluster.create("spread", *([OTTLA, APACHE] for _ in range(4)), segment_bytes="20000")
    cluster.wait_for_isr("spread", 2)
    for partition in range(4):
        send(cluster, "spread", partition, [f"before-{partition}"])
    broken = home_of(cluster, "spread-0")
    in_broken = {index for index in range(4) if home_of(cluster, f"spread-{index}") == broken}
    assert 0 < len(in_broken) < 4

    shutil.rmtree(broken)
    for index in range(4):
        send(cluster, "spread", index, [f"after-{index}-{number}" * 300 for number in range(30)])

    def leaders_are_right() -> bool:
        return cluster.leaders("spread") == [APACHE if index in in_broken else OTTLA for index in range(4)]

    wait_until(leaders_are_right, "only the broken directory's partitions are led elsewhere", 30)
    assert len(read_all(cluster, "spread")) == 4 * 31
    assert "log directory failed" in cluster.brokers[OTTLA].log_text()

    assert cluster.brokers[OTTLA].shut_down() == 0
    cluster.start_again(OTTLA)
    cluster.wait_for_isr("spread", 2)
    assert len(read_all(cluster, "spread")) == 4 * 31
