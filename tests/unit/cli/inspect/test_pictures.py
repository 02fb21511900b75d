"""What is printed of topics, groups and the cluster."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ottla.cli.inspect.watching import fitted, picture
from ottla.cli.local.state import asked, forget_requests, is_locked, read_state
from ottla.cli.tools.cluster.broker_api_versions import api_lines
from ottla.cli.tools.cluster.kafka_scripts import SCRIPTS, STOPPING
from ottla.cli.tools.groups.show import offset_lines
from ottla.cli.tools.topics.show import ShownTopic
from ottla.insight.delta import changes
from ottla.insight.lag import Lag
from ottla.insight.overview import ClusterView, GroupLine, overview, trouble
from ottla.insight.picture import BrokerSeen, PartitionSeen, Picture, TopicSeen
from ottla.insight.plan import Pace, Progress, plan_text
from ottla.insight.wording import size_text
from ottla.launch.cluster import LOCK_NAME
from ottla.launch.data_dir import lock_data_dir
from ottla.model.ids import TopicId, TopicPartition
from ottla.wire.apis.api_versions import ApiVersion
from support.processes.commands import run_here

ORDERS_0 = TopicPartition("orders", 0)


def a_topic(*partitions: PartitionSeen, min_isr: int = 1) -> ShownTopic:
    return ShownTopic("orders", TopicId(bytes(15) + b"\x09"), {"a": "1"}, min_isr, list(partitions))


HEALTHY = PartitionSeen(0, 1, (1, 2), (1, 2))
SHRUNK = PartitionSeen(1, 1, (1, 2), (1,))
OFFLINE = PartitionSeen(2, -1, (1, 2), (2,))
MOVING = PartitionSeen(3, 1, (1, 2, 3), (1, 2), adding=(3,))


def test_a_moving_partition_shows_what_comes_and_goes_and_is_not_under_replicated() -> None:
    topic = a_topic(MOVING)

    assert list(topic.lines(None, frozenset({1})))[1] == (
        "\tTopic: orders\tPartition: 3\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\tAdding Replicas: 3"
        "\tRemoving Replicas: \tElr: N/A\tLastKnownElr: N/A"
    )
    assert list(topic.lines("--under-replicated-partitions", frozenset({1}))) == []


@pytest.mark.parametrize(
    ("flag", "numbers"),
    [
        ("--under-replicated-partitions", [1, 2]),
        ("--unavailable-partitions", [2]),
        ("--under-min-isr-partitions", [1, 2]),
        ("--at-min-isr-partitions", [0]),
    ],
)
def test_a_narrowing_flag_shows_only_its_partitions_and_no_header(flag: str, numbers: list[int]) -> None:
    topic = a_topic(HEALTHY, SHRUNK, OFFLINE, min_isr=2)

    lines = list(topic.lines(flag, frozenset({1, 2})))

    assert [int(line.split("\t")[2].removeprefix("Partition: ")) for line in lines] == numbers


def test_columns_grow_with_long_names_and_unknown_offsets_are_dashes() -> None:
    lines = offset_lines([Lag("g" * 20, ORDERS_0, None, 7), Lag("g", ORDERS_0, 3, 7, "me", "/host", "id")])

    assert lines[1].startswith("GROUP" + " " * 16 + "TOPIC")
    assert lines[2].split() == ["g" * 20, "orders", "0", "-", "7", "-", "-", "-", "-"]
    assert lines[3].split() == ["g", "orders", "0", "3", "7", "4", "me", "/host", "id"]


def test_apis_that_a_broker_does_not_speak_are_unsupported() -> None:
    lines = api_lines([ApiVersion(api_key=0, min_version=3, max_version=99), ApiVersion(api_key=999)])

    assert lines[0] == "Produce(0): 3 to 99 [usable: 11]"
    assert lines[1] == "Fetch(1): UNSUPPORTED"
    assert lines[-1] == "UNKNOWN(999): 0"


def test_apis_that_only_other_brokers_speak_are_shown_by_name() -> None:
    lines = api_lines([ApiVersion(api_key=68, min_version=0, max_version=0)])

    assert "ConsumerGroupHeartbeat(68): 0 [usable: 0]" in lines


def test_a_plan_is_written_as_kafkas_tool_writes_it() -> None:
    assert plan_text({ORDERS_0: (1, 2)}) == (
        '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )


def test_progress_says_what_is_left_and_how_long_it_takes() -> None:
    assert (
        str(Progress(2, 3_000_000, 1_500_000.0))
        == "2 partitions move, 3.0 MB to fetch, 1.5 MB/s, about 2 s left"
    )
    assert str(Progress(1, 10, 0.0)) == "1 partitions move, 10 B to fetch"
    assert str(Progress(0, 0, 0.0)) == "all partitions are moved"
    assert size_text(2.5e15) == "2500.0 TB"


def test_progress_has_a_bar_and_the_pace_of_the_last_seconds_though_bytes_come_in_bursts() -> None:
    pace = Pace()
    looks = [(0.0, 100), (5.0, 60), (10.0, 60), (20.0, 20)]
    told = [pace.progress(now, 1, left) for now, left in looks]

    assert [progress.bytes_per_s for progress in told] == [0.0, 8.0, 4.0, 40 / 15]
    assert [progress.bar() for progress in told] == [
        "[..........] ", "[####......] ", "[####......] ", "[########..] ",
    ]  # fmt: skip
    assert pace.progress(21.0, 0, 0).bar() == ""


@pytest.mark.parametrize(
    ("partition", "kind"),
    [
        (HEALTHY, ""),
        (SHRUNK, "under min ISR"),
        (OFFLINE, "offline"),
        (MOVING, "reassigning"),
        (HEALTHY._replace(leader=2), "not preferred"),
        (HEALTHY._replace(replicas=(1, 2, 3)), "under-replicated"),
    ],
)
def test_the_worst_is_said_of_a_partition(partition: PartitionSeen, kind: str) -> None:
    assert trouble(partition, 2, frozenset({1, 2}))[0] == kind


def a_picture(**changed: object) -> Picture:
    """Broker 1 is dead and held the other replica of the one partition."""
    seen = Picture(
        "id",
        0,
        4,
        {0: BrokerSeen(0, "h", 1)},
        {"orders": TopicSeen("orders")},
        {ORDERS_0: PartitionSeen(0, 0, (0, 1), (0,))},
    )
    return replace(seen, **changed)  # type: ignore[arg-type]


def a_view(**changed: object) -> ClusterView:
    view = overview(a_picture(), [GroupLine("readers", "Stable", 2, 9)])
    return replace(view, **changed)  # type: ignore[arg-type]


def test_the_screen_fits_80_columns_and_names_who_is_not_alive() -> None:
    lines = a_view().lines()

    assert lines[:2] == [
        "cluster id   controller: broker 0, epoch 4",
        "1 topics, 1 partitions: 1 under-replicated",
    ]
    assert any(line.split()[:3] == ["1", "not", "alive"] for line in lines)
    assert any(line.split() == ["readers", "Stable", "2", "9"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_small_terminal_shows_fewer_rows_and_still_the_last_events() -> None:
    view = a_view(troubles={f"orders-{n}": "in sync 0 of 0,1" for n in range(50)})
    events = [f"12:00:0{n}  broker {n} is gone" for n in range(9)]

    lines = fitted(view, events, 22)

    assert len(lines) < 22
    assert lines[-6:] == events[-6:]
    assert any(line.startswith("... and ") for line in lines)
    assert fitted(view, [], 40) == [*view.lines(), ""]
    assert fitted(view, events, 5)[-1] == events[-1]


def test_a_line_that_is_too_long_is_cut_and_not_wrapped() -> None:
    console = Console(width=30, file=io.StringIO())

    drawn = console.render_lines(picture(a_view(), [], 24))

    assert len(drawn) == len(a_view().lines()) + 1


def test_on_a_terminal_the_same_screen_marks_what_is_wrong() -> None:
    view = a_view()
    drawn = picture(view, ["12:00:00  broker 1 is gone", "12:00:00  orders-0 leader 1 -> 2"])
    marked = {drawn.plain[span.start : span.end]: str(span.style) for span in drawn.spans}

    assert drawn.plain.splitlines()[: len(view.lines())] == view.lines()
    assert marked["not alive"] == marked["is gone"] == "bold red"
    assert marked["leader 1 -> 2"] == "bold cyan"


def test_a_cluster_without_topics_has_nothing_to_lead() -> None:
    view = overview(a_picture(topics={}, partitions={}))

    assert view.lines()[1] == "0 topics, 0 partitions: nothing to lead yet"


def test_what_changed_between_two_looks_is_told() -> None:
    new = TopicPartition("new", 0)
    later = a_picture(
        controller=1,
        brokers={1: BrokerSeen(1, "h", 2)},
        topics={"orders": TopicSeen("orders"), "new": TopicSeen("new")},
        partitions={
            ORDERS_0: PartitionSeen(0, 1, (0, 1), (1,)),
            new: PartitionSeen(0, 1, (1,), (1,)),
        },
    )

    assert changes(a_picture(), later) == [
        "controller: broker 0 -> 1",
        "broker 0 is gone",
        "broker 1 is here",
        "new-0 created, led by 1",
        "orders-0 leader 0 -> 1",
        "orders-0 in sync 0 -> 1",
    ]
    assert changes(later, later) == []


def test_an_epoch_is_news_when_both_are_known() -> None:
    fifth, sixth = (a_picture(controller_epoch=epoch) for epoch in (5, 6))

    assert changes(fifth, sixth) == ["controller epoch 5 -> 6"]
    assert changes(a_picture(controller_epoch=None), fifth) == []


def test_scripts_call_the_commands_and_foreign_files_are_left_alone(tmp_path: Path) -> None:
    written = run_here("kafka-scripts", str(tmp_path / "bin"))
    again = run_here("kafka-scripts", str(tmp_path / "bin"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kafka-topics.sh").write_text("theirs")
    refused = run_here("kafka-scripts", str(tmp_path / "other"))

    assert (written.exit_code, again.exit_code, refused.exit_code) == (0, 0, 1)
    assert sorted(file.name for file in (tmp_path / "bin").iterdir()) == sorted([*SCRIPTS, *STOPPING])
    assert 'ottla.cli.main topics "$@"' in (tmp_path / "bin" / "kafka-topics.sh").read_text()
    assert (tmp_path / "other" / "kafka-topics.sh").read_text() == "theirs"


def test_a_data_directory_is_in_use_while_its_lock_is_held(tmp_path: Path) -> None:
    import os

    assert not is_locked(tmp_path)
    lock = lock_data_dir(tmp_path, LOCK_NAME)

    assert is_locked(tmp_path)
    assert read_state(tmp_path) is None, "a cluster that has not said who it is"
    os.close(lock)
    assert not is_locked(tmp_path)


def test_requests_of_a_cluster_that_is_gone_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "restart-1").touch()
    (tmp_path / "requests" / "restart-x").touch()

    assert list(asked(tmp_path)) == [1]
    forget_requests(tmp_path)
    assert asked(tmp_path) == {}


def test_commands_on_a_cluster_that_does_not_run_say_how_to_start_one(tmp_path: Path) -> None:
    for words in (["status"], ["down"], ["kill", "0"], ["pause", "0"], ["resume", "0"], ["restart", "0"]):
        ran = run_here(*words, "--data-dir", str(tmp_path))
        assert ran.exit_code == 1
        assert "`ottla up --detach`" in ran.stderr
