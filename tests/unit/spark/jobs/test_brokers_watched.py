"""A job tells within seconds which brokers do not answer, once, and once more when they do."""

from __future__ import annotations

from ottla.client.errors import ConnectionLost
from ottla.spark.jobs.shared.brokers import PATIENCE_MS, Answers, Reach, ask_brokers
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import HANG_UP, SILENCE, FakeCluster

REFUSED = ConnectionLost("broker:9001: connection refused")


def answers(*brokers: int, lost: tuple[int, ...] = ()) -> Answers:
    return {broker: REFUSED if broker in lost else None for broker in brokers}


def test_brokers_that_answer_are_not_spoken_of() -> None:
    assert Reach().heard(answers(0, 1, 2)) == []


def test_a_broker_that_is_gone_is_told_once_with_its_cause_and_what_happens_next() -> None:
    reach = Reach()

    told = [line for _ in range(3) for line in reach.heard(answers(0, 1, 2, lost=(1,)))]

    assert told == [
        "broker 1 cannot be reached (broker:9001: connection refused);"
        " the job goes on with the others, and waits a minute or two for partitions that no other has"
    ]


def test_that_nobody_is_left_is_told_with_the_time_that_the_job_has() -> None:
    reach = Reach()
    reach.heard(answers(0, 1, lost=(1,)))

    assert reach.heard(answers(0, 1, lost=(0, 1))) == [
        "no broker can be reached (broker:9001: connection refused);"
        " the job goes on trying, and gives up after a minute or two"
    ]


def test_a_broker_that_is_back_is_told_with_those_that_are_not() -> None:
    reach = Reach()
    reach.heard(answers(0, 1, 2, lost=(0, 1, 2)))

    assert reach.heard(answers(0, 1, 2, lost=(2,))) == [
        "brokers 0, 1 are back; broker 2 still cannot be reached"
    ]
    assert reach.heard(answers(0, 1, 2)) == ["broker 2 is back; all brokers can be reached"]


def test_a_broker_that_the_others_no_longer_name_is_asked_all_the_same() -> None:
    cluster = FakeCluster()
    known: set[int] = set()
    assert cluster.run(ask_brokers(cluster.engine, known)) == dict.fromkeys(cluster.brokers)
    cluster.kill(1)
    cluster.run(ask_brokers(cluster.engine, known))
    cluster.pass_time(5_000)

    said = cluster.run(ask_brokers(cluster.engine, known))

    assert 1 not in cluster.engine.metadata.brokers
    assert {broker: str(why) for broker, why in said.items() if why} == {1: "broker:9001: connection refused"}


def test_a_broker_that_is_frozen_is_given_up_after_three_seconds() -> None:
    cluster = FakeCluster()
    known: set[int] = set()
    cluster.run(ask_brokers(cluster.engine, known))
    before_ms = cluster.now_ms
    cluster.script(ApiKey.API_VERSIONS, SILENCE)

    said = cluster.run(ask_brokers(cluster.engine, known))

    assert [broker for broker, why in said.items() if why] == [min(known)]
    assert cluster.now_ms - before_ms == PATIENCE_MS


def test_a_connection_that_is_closed_is_made_again_before_its_broker_counts_as_gone() -> None:
    cluster = FakeCluster()
    known: set[int] = set()
    cluster.run(ask_brokers(cluster.engine, known))
    cluster.script(ApiKey.API_VERSIONS, HANG_UP)

    assert not any(cluster.run(ask_brokers(cluster.engine, known)).values())
