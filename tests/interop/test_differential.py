"""The recorded list of requests, sent to two brokers: an Ottla broker answers what an Apache broker answers.

One cluster under Apache's controller: broker 1 is the controller and holds what both must not, broker 2 is
the reference, broker 3 the candidate. To compare any two brokers of a cluster by hand::

    python -m support.differential 127.0.0.1:9092 127.0.0.1:9093 127.0.0.1:2181
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.metadata import MetadataRequest
from support.clusters.mixed import MixedCluster, mixed_cluster
from support.differential.allowed import allowed_differences
from support.differential.compare import compare
from support.differential.same_questions import BROKER, FRAMES, REQUESTS, described
from support.differential.suite import ALL, run_suite
from support.differential.target import Target
from support.running.waiting import wait_until
from support.wire.client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

CONTROLLER, REFERENCE, CANDIDATE = 1, 2, 3
NOT_SERVED = {
    58: "Envelope is KRaft's",
    68: "never served in ZooKeeper mode",
    69: "never served in ZooKeeper mode",
}
"""APIs that Apache advertises and Ottla does not, and why."""
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


Judged = tuple[MixedCluster, Target, Target]


@pytest.fixture(scope="module")
def ottla_judged(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[Judged]:
    """An Ottla broker beside the reference, and a topic that lies with neither."""
    with judged(tmp_path_factory.mktemp("judged"), "ottla") as (cluster, reference, candidate):
        cluster.create("orders", *([CONTROLLER] for _ in range(3)))
        yield cluster, reference, candidate


def address(target: Target) -> str:
    return f"127.0.0.1:{target.port}"


def asked(target: Target, request: Any, version: int) -> Any:
    with WireClient(address(target)) as client:
        return client.ask(request, version)


def plain(value: Any) -> Any:
    """An answer as plain values, lists in an order of their own: neither broker promises one."""
    match value:
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case list():
            return sorted((plain(each) for each in value), key=repr)
        case _:
            return value


def without_what_may_differ(request: Any, answer: Any) -> Any:
    if isinstance(request, ApiVersionsRequest):
        answer["api_keys"] = [row for row in answer["api_keys"] if row["api_key"] not in NOT_SERVED]
    return answer


def wait_until_both_know_the_same(*targets: Target) -> None:
    request = MetadataRequest(topics=None)

    def is_same() -> bool:
        first, second = (plain(asked(target, request, 12)) for target in targets)
        return bool(first == second)

    wait_until(is_same, "both brokers know the same cluster", 30)


def test_the_same_is_said_of_the_cluster_its_settings_and_a_topic(ottla_judged: Judged) -> None:
    _, *targets = ottla_judged
    wait_until_both_know_the_same(*targets)
    different = []
    for number, (request, version) in enumerate(REQUESTS):
        theirs, ours = (
            without_what_may_differ(request, plain(asked(target, request, version))) for target in targets
        )
        if theirs != ours:
            different.append(f"{number} {type(request).__name__} v{version}:\n{theirs}\n{ours}")

    assert not different, "\n".join(different)


def test_a_bad_frame_is_treated_the_same(ottla_judged: Judged) -> None:
    _, *targets = ottla_judged
    different = []
    for frame in FRAMES:
        answers = []
        for target in targets:
            with WireClient(address(target)) as client:
                client.send_bytes(frame)
                answers.append(client.read_frame() or "hung up")
        if answers[0] != answers[1]:
            different.append(f"{frame!r}: {answers}")

    assert not different, "\n".join(different)


NEWER_SETTINGS = {"transaction.two.phase.commit.enable"}
"""Kafka 3.9 does not know it; those after it do."""


def test_a_brokers_settings_have_apaches_names_types_defaults_and_scopes(ottla_judged: Judged) -> None:
    _, reference, candidate = ottla_judged

    theirs, ours = (
        {row.name: row for row in asked(target, described(BROKER, str(number)), 4).results[0].configs}
        for target, number in ((reference, REFERENCE), (candidate, CANDIDATE))
    )

    assert {name for name in ours if not name.startswith("ottla.")} - NEWER_SETTINGS == set(theirs)
    for name, row in theirs.items():
        mine = ours[name]
        assert (mine.config_type, mine.read_only, mine.is_sensitive) == (
            row.config_type,
            row.read_only,
            row.is_sensitive,
        ), name
        if row.config_source == mine.config_source == 5:
            assert mine.value == row.value, name


def test_an_ottla_broker_answers_what_an_apache_broker_answers(ottla_judged: Judged) -> None:
    allowed = allowed_differences()
    _, reference, candidate = ottla_judged
    count, unexpected = run_suite(reference, candidate, allowed)

    assert count > 1_000
    assert not unexpected, "\n".join(map(str, unexpected[:40]))
    assert [each.reason for each in allowed if not each.used] == [], "these differences are no more"


@pytest.mark.long
def test_two_apache_brokers_answer_the_same_and_a_changed_one_does_not(
    tmp_path_factory: pytest.TempPathFactory, jars: object
) -> None:
    with judged(tmp_path_factory.mktemp("alike"), "apache") as (cluster, reference, candidate):
        count, unexpected = run_suite(reference, candidate, allowed_differences()[:1])
        alter_topic(cluster, candidate.topic("tiny"), "max.message.bytes", "100000")
        number = next(
            index for index, case in enumerate(ALL) if case.name == "produce more than the topic takes"
        )
        differences = wait_until(
            lambda: compare(ALL[number], number, reference, candidate)[1],
            "a broker with another setting differs",
        )

    assert count > 1_000
    assert not unexpected, "\n".join(map(str, unexpected[:40]))
    assert {difference.path.rpartition(".")[2] for difference in differences} >= {"error_code", "base_offset"}
