"""``consumer-groups --reset-offsets``: which targets count as given, and partitions that nobody leads."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ottla.cli.shared import connection
from ottla.cli.shared.options import Output, only_with
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.groups import reset, show
from ottla.cli.tools.groups.command import app
from ottla.client.admin.groups import alter_group_offsets, describe_group, list_group_offsets
from ottla.client.admin.topics import describe_topics
from ottla.client.fetching.offsets import list_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST
from ottla.wire.apis.describe_groups import DescribedGroup
from ottla.wire.apis.list_offsets import ListOffsetsPartitionResponse
from ottla.wire.apis.offset_fetch import OffsetFetchResponsePartition
from support.client.answering_client import AnsweringClient, Operation, described

ORDERS = TopicPartition("orders", 0)
LOG_END = 10


def cluster(
    leaders: dict[str, list[int]], committed: int = 4, others: dict[Operation, Any] | None = None
) -> AnsweringClient:
    def offsets(wanted: dict[TopicPartition, int]) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
        return {
            name: ListOffsetsPartitionResponse(offset=0 if time == EARLIEST else LOG_END)
            for name, time in wanted.items()
        }

    return AnsweringClient(
        {
            describe_topics: described(leaders),
            describe_group: DescribedGroup(group_state="Empty"),
            list_group_offsets: {ORDERS: OffsetFetchResponsePartition(committed_offset=committed)},
            list_offsets: offsets,
            **(others or {}),
        }
    )


@pytest.mark.parametrize(
    ("target", "offset"), [(["--to-offset", "0"], 0), (["--shift-by", "0"], 4), (["--to-earliest"], 0)]
)
def test_zero_is_a_target(monkeypatch: pytest.MonkeyPatch, target: list[str], offset: int) -> None:
    monkeypatch.setattr(connection, "connected", cluster({"orders": [1]}).connected)
    monkeypatch.setattr(show, "chosen", lambda _client, names: names)
    words = ["--reset-offsets", "--group", "g", "--topic", "orders", "--export", *target]

    result = CliRunner().invoke(app, words)

    assert (result.exit_code, result.stdout) == (0, f"orders,0,{offset}\n"), result


def test_an_option_with_the_value_zero_is_refused_where_it_means_nothing() -> None:
    with pytest.raises(UsageRefused, match="--to-offset cannot be used with --list"):
        only_with("--list", (), {"--to-offset": 0})
    only_with("--list", (), {"--to-offset": None, "--execute": False, "--group": [], "--topic": ()})


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--to-earliest", True),
        ("--to-latest", True),
        ("--to-current", True),
        ("--to-datetime", "2026-01-31T12:00:00.000"),
        ("--by-duration", "PT1H"),
    ],
)
def test_a_partition_without_a_leader_is_named_and_nothing_is_reset(flag: str, value: object) -> None:
    client = cluster({"orders": [1, -1]})

    with pytest.raises(CommandRefused, match='The partitions "orders-1" have no leader'):
        reset.reset(
            client.as_client,
            ["g"],
            ["orders"],
            False,
            {flag: value},
            mode=reset.Mode.EXECUTE,
            output=Output.TABLE,
        )


def test_a_topic_that_is_gone_is_named_too() -> None:
    with pytest.raises(CommandRefused, match='The partitions "orders-0" do not exist'):
        reset.reset(
            cluster({}).as_client,
            ["g"],
            [],
            True,
            {"--to-earliest": True},
            mode=reset.Mode.PLAN,
            output=Output.TABLE,
        )


def exported(monkeypatch: pytest.MonkeyPatch, committing: AnsweringClient, *words: str) -> Result:
    monkeypatch.setattr(connection, "connected", committing.connected)
    monkeypatch.setattr(show, "chosen", lambda _client, names: names or ["one, two"])
    return CliRunner().invoke(app, ["--reset-offsets", "--all-topics", "--to-current", "--export", *words])


def test_a_plan_of_all_groups_names_them_also_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = exported(monkeypatch, cluster({"orders": [1]}), "--all-groups")

    assert (result.exit_code, result.stdout) == (0, '"one, two",orders,0,4\n'), result
    assert reset.read_plan(result.stdout, ["one, two"], is_one_group=False) == {"one, two": {ORDERS: 4}}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Dead", "Consumer group 'g' does not exist"),
        ("Empty", "group 'g' has committed no offsets, so --all-topics means none; name them with --topic"),
    ],
)
def test_all_topics_of_a_group_that_has_read_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, state: str, said: str
) -> None:
    without = {list_group_offsets: {}, describe_group: DescribedGroup(group_state=state)}
    client = cluster({"orders": [1]}, others=without)

    result = exported(monkeypatch, client, "--group", "g")

    assert result.stdout == ""
    assert isinstance(result.exception, CommandRefused)
    assert said in str(result.exception)


def test_a_type_of_groups_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "connected", cluster({}).connected)

    result = CliRunner().invoke(app, ["--list", "--type", "clasic"])

    assert isinstance(result.exception, UsageRefused)
    assert str(result.exception) == "--type 'clasic' is none of Consumer, Classic, Share"


def test_offsets_are_shown_as_reset_when_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    client = cluster({"orders": [1]}, others={alter_group_offsets: {ORDERS: ErrorCode.UNKNOWN_MEMBER_ID}})
    monkeypatch.setattr(connection, "connected", client.connected)
    words = ["--reset-offsets", "--group", "g", "--topic", "orders", "--to-earliest", "--execute"]

    result = CliRunner().invoke(app, words)

    assert result.stdout == ""
    assert str(result.exception).startswith("group g: the offset of orders-0 was not set: ")
