"""Apache's and Ottla's coordinator are killed in the middle of a conversation, and load what the log says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.test_groups_equal_apaches import parting
from interop.test_transactions_equal_apaches import coordinates
from support.groups.two_clusters import two_clusters
from support.running.waiting import wait_until
from support.transactions.restarted_cases import CASES, RestartedTalk, before_there_is_a_topic

pytestmark = [
    pytest.mark.apache,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.full("starts Apache's broker again"),
]

FIRST = "before-there-is-a-topic"
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
BACK = "Offsets of a transaction that are deleted before it is committed"
DIFFERENT = {
    "a-group-deleted-with-pending-offsets": BACK,
    "offsets-deleted-while-pending": BACK,
    "dead-in-the-log": "A record in `__transaction_state` with the state Dead",
}
"""Conversations that must part, and the row of docs/differences.md that says why."""
SETTINGS: dict[str, Any] = {
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1_000,
    "zookeeper.session.timeout.ms": 2_000,
}
Told = dict[str, list[tuple[str, Any]]]


def told_by(broker: Any) -> Told:
    """All conversations with one broker, which is killed once."""
    first = RestartedTalk(broker.address, FIRST)
    before_there_is_a_topic(first)
    first.close()
    wait_until(lambda: coordinates(broker.address), "the broker coordinates transactions", 60)
    talks = [(name, RestartedTalk(broker.address, name), run) for name, run in CASES]
    halves = [(talk, run(talk)) for _, talk, run in talks]
    for talk, half in halves:
        next(half)
        talk.forget()
    broker.kill()
    broker.restart()
    wait_until(lambda: coordinates(broker.address), "the broker coordinates again", 60)
    for talk, half in halves:
        assert next(half, "over") == "over"
        talk.close()
    return {FIRST: first.answers, **{name: talk.answers for name, talk, _ in talks}}


@pytest.fixture(scope="module")
def told(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Told, Told]]:
    with two_clusters(tmp_path_factory.mktemp("restarted"), **SETTINGS) as running:
        yield told_by(running.apache), told_by(running.ottla)


@pytest.mark.parametrize("name", [FIRST, *(name for name, _ in CASES)])
def test_behind_a_restart_both_say_the_same(told: tuple[Told, Told], name: str) -> None:
    parts = parting(told[0][name], told[1][name])

    if name in DIFFERENT:
        assert parts, "they answer alike: take it off the list, and out of the document"
        assert DIFFERENT[name] in DIFFERENCES.read_text(encoding="utf-8")
    else:
        assert not parts, "\n".join(parts)
