"""The recorded list of requests, sent to two brokers: an Ottla broker answers what an Apache broker answers.

One cluster under Apache's controller: broker 1 is the controller and holds what both must not, broker 2 is
the reference, broker 3 the candidate. To compare any two brokers of a cluster by hand::

    python -m support.differential 127.0.0.1:9092 127.0.0.1:9093 127.0.0.1:2181
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from support.differential.allowed import allowed_differences
from support.differential.compare import compare
from support.differential.suite import ALL, run_suite
from support.differential.target import Target
from support.mixed import MixedCluster, mixed_cluster
from support.waiting import wait_until

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

CONTROLLER, REFERENCE, CANDIDATE = 1, 2, 3
SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "zookeeper.session.timeout.ms": 10_000,  # 440 new partitions at once on a busy machine take their time
}


@contextmanager
def judged(directory: Path, candidate: str) -> Iterator[tuple[MixedCluster, Target, Target]]:
    """A cluster with a candidate of some kind, whose internal topics lie with the controller."""
    kinds = {CONTROLLER: "apache", REFERENCE: "apache", CANDIDATE: candidate}
    with mixed_cluster(directory, kinds, **SETTINGS) as cluster:
        cluster.elect_controller(CONTROLLER)
        for topic in ("__consumer_offsets", "__transaction_state"):
            cluster.create(topic, [CONTROLLER], cleanup_policy="compact")
        reference, other = (
            Target(str(number), cluster.brokers[number].port, cluster.bootstrap, cluster.zookeeper.connect)
            for number in (REFERENCE, CANDIDATE)
        )
        yield cluster, reference, other


def alter_topic(cluster: MixedCluster, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for future in cluster.admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_an_ottla_broker_answers_what_an_apache_broker_answers(
    tmp_path_factory: pytest.TempPathFactory, jars: object
) -> None:
    allowed = allowed_differences()
    with judged(tmp_path_factory.mktemp("judged"), "ottla") as (_, reference, candidate):
        asked, unexpected = run_suite(reference, candidate, allowed)

    assert asked > 1_000
    assert not unexpected, "\n".join(map(str, unexpected[:40]))
    assert [each.reason for each in allowed if not each.used] == [], "these differences are no more"


@pytest.mark.long
def test_two_apache_brokers_answer_the_same_and_a_changed_one_does_not(
    tmp_path_factory: pytest.TempPathFactory, jars: object
) -> None:
    with judged(tmp_path_factory.mktemp("alike"), "apache") as (cluster, reference, candidate):
        asked, unexpected = run_suite(reference, candidate, allowed_differences()[:1])
        alter_topic(cluster, candidate.topic("tiny"), "max.message.bytes", "100000")
        number = next(
            index for index, case in enumerate(ALL) if case.name == "produce more than the topic takes"
        )
        differences = wait_until(
            lambda: compare(ALL[number], number, reference, candidate)[1],
            "a broker with another setting differs",
        )

    assert asked > 1_000
    assert not unexpected, "\n".join(map(str, unexpected[:40]))
    assert {difference.path.rpartition(".")[2] for difference in differences} >= {"error_code", "base_offset"}
