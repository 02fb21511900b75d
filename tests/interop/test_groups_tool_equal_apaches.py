"""kafka-consumer-groups says the same about a group at Ottla as about the same group at Apache."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from support.groups.conversation import TOPIC, UUID, Talk
from support.groups.two_clusters import TOPICS, TwoClusters, two_clusters
from support.processes.apache import ApacheBroker
from support.processes.apache_tools import run_apache
from support.processes.ottla_broker import OttlaBroker

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

LIVING, IDLE = "living", "idle"
FIRST_MS, STEP_MS, RECORDS = 1_700_000_000_000, 1_000, 10
PATIENCE = ("--timeout", "60000")
FROM_FILE = "orders,0,3\norders,1,4\n"

QUESTIONS = {
    "list": ("--list",),
    "list states": ("--list", "--state"),
    "list a state": ("--list", "--state", "stable"),
    "list types": ("--list", "--type"),
    "describe": ("--describe", "--group", LIVING),
    "describe verbose": ("--describe", "--group", LIVING, "--verbose"),
    "describe an idle group": ("--describe", "--group", IDLE),
    "describe an unknown group": ("--describe", "--group", "nobody"),
    "describe all": ("--describe", "--all-groups"),
    "members": ("--describe", "--group", LIVING, "--members"),
    "members verbose": ("--describe", "--group", LIVING, "--members", "--verbose"),
    "state": ("--describe", "--group", LIVING, "--state"),
    "state of an idle group": ("--describe", "--group", IDLE, "--state"),
    "state verbose": ("--describe", "--group", LIVING, "--state", "--verbose"),
    "delete a living group": ("--delete", "--group", LIVING),
    "delete an unknown group": ("--delete", "--group", "nobody"),
    "delete offsets in use": ("--delete-offsets", "--group", LIVING, "--topic", TOPIC),
    "delete offsets of nobody": ("--delete-offsets", "--group", "nobody", "--topic", TOPIC),
    "reset a living group": (
        *("--reset-offsets", "--group", LIVING, "--topic", TOPIC),
        *("--to-earliest", "--execute"),
    ),
}
MORE_QUESTIONS = {
    "list of a type": ("--list", "--type", "consumer"),
    "list two states": ("--list", "--state", "stable,empty"),
    "list an unknown state": ("--list", "--state", "sleepy"),
    "describe offsets of two": ("--describe", "--group", LIVING, "--group", IDLE, "--offsets"),
    "state of all": ("--describe", "--all-groups", "--state"),
    "members of all": ("--describe", "--all-groups", "--members", "--verbose"),
}
RESETS = {
    "to earliest": ("--to-earliest",),
    "to latest": ("--to-latest",),
    "to an offset": ("--to-offset", "4"),
    "to an offset too far": ("--to-offset", "400"),
    "by a shift": ("--shift-by", "2"),
    "back by a shift": ("--shift-by", "-1"),
    "to a time": ("--to-datetime", "2023-11-14T22:13:25.000Z"),
    "by a duration": ("--by-duration", "PT0H0M1S"),
    "to current": ("--to-current",),
}
MORE_RESETS = {
    "by a duration before all": ("--by-duration", "P3650D"),
    "to a time to come": ("--to-datetime", "2100-01-01T00:00:00.000"),
    "far back by a shift": ("--shift-by", "-1000"),
}


def in_the_long_form(asked: dict[str, tuple[str, ...]]) -> list[Any]:
    return [pytest.param(words, marks=pytest.mark.long, id=name) for name, words in asked.items()]


def always(asked: dict[str, tuple[str, ...]]) -> list[Any]:
    return [pytest.param(words, id=name) for name, words in asked.items()]


@pytest.fixture(scope="module")
def clusters(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoClusters]:
    with two_clusters(tmp_path_factory.mktemp("two"), log_retention_ms=-1) as running:
        talks = []
        for broker in running.both:
            fill(broker.address)
            idle = Talk(broker.address, IDLE)
            idle.commit({(TOPIC, 0): 1, (TOPIC, 1): 2, (TOPIC, 2): 3})
            living = Talk(broker.address, LIVING)
            long = {"session_timeout_ms": 1_800_000}
            joined = living.stable(**long)
            living.commit({(TOPIC, 0): 4, (TOPIC, 1): 5}, joined.member_id, joined.generation_id)
            talks += [idle, living]
        yield running
        for talk in talks:
            talk.close()


def fill(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for partition in range(TOPICS[TOPIC]):
        for number in range(RECORDS):
            producer.produce(TOPIC, b"x", partition=partition, timestamp=FIRST_MS + number * STEP_MS)
    assert producer.flush(30) == 0


def said(broker: ApacheBroker | OttlaBroker, *words: str) -> list[str]:
    """The tool's lines without ports and ids of this run; no order is promised, nor any column's width."""
    done = run_apache("consumer-groups", "--bootstrap-server", broker.address, *PATIENCE, *words)
    text = (
        UUID.sub("<uuid>", done.stdout)
        .replace(broker.address, "<broker>")
        .replace(str(broker.port), "<port>")
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith(("Error", "Exception"))]
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return [f"exit {done.exit_code}", *sorted(line for line in lines if line), *errors]


def said_by_both(clusters: TwoClusters, *words: str) -> tuple[list[str], list[str]]:
    theirs, ours = (said(broker, *words) for broker in clusters.both)
    return theirs, ours


@pytest.mark.parametrize("words", [*always(QUESTIONS), *in_the_long_form(MORE_QUESTIONS)])
def test_the_tool_says_what_it_says_of_apache(clusters: TwoClusters, words: tuple[str, ...]) -> None:
    theirs, ours = said_by_both(clusters, *words)

    assert len(theirs) > 1
    assert ours == theirs


@pytest.mark.parametrize("words", [*always(RESETS), *in_the_long_form(MORE_RESETS)])
@pytest.mark.parametrize(
    "scope",
    [
        ("--topic", f"{TOPIC}:0,2"),
        pytest.param(("--topic", TOPIC), marks=pytest.mark.long),
        pytest.param(("--all-topics",), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_offsets_would_be_reset_as_at_apache(
    clusters: TwoClusters, words: tuple[str, ...], scope: tuple[str, ...]
) -> None:
    theirs, ours = said_by_both(clusters, "--reset-offsets", "--group", IDLE, *scope, *words, "--dry-run")

    assert len(theirs) > 1
    assert ours == theirs


def test_offsets_are_reset_deleted_and_the_group_with_them(
    clusters: TwoClusters, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("plan") / "offsets.csv"
    file.write_text(FROM_FILE)
    group = ("--group", "passing")
    for broker in clusters.both:
        talk = Talk(broker.address, "passing")
        talk.commit({(TOPIC, 0): 1, (TOPIC, 1): 2, (TOPIC, 2): 3})
        talk.close()

    steps = (
        ("--reset-offsets", *group, "--topic", TOPIC, "--to-offset", "6", "--execute"),
        ("--reset-offsets", *group, "--from-file", str(file), "--execute"),
        ("--reset-offsets", *group, "--all-topics", "--to-current", "--export", "--dry-run"),
        ("--describe", *group),
        ("--delete-offsets", *group, "--topic", f"{TOPIC}:2"),
        ("--describe", *group),
        ("--delete", *group),
        ("--describe", *group),
    )
    for words in steps:
        theirs, ours = said_by_both(clusters, *words)
        assert ours == theirs, words
