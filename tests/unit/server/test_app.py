"""What a broker says of its settings and its machine before it runs."""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ottla.server.app import BrokerProcess, BrokerRefused, end_signals, main, read_config
from ottla.server.edge import Edge
from ottla.server.open_files import (
    OPEN_FILES_BESIDE_LOGS,
    raise_open_files_limit,
    warn_about_open_files,
)

SOUND = {"broker.id": "1", "zookeeper.connect": "zk:2181", "listeners": "PLAINTEXT://127.0.0.1:9092"}


def a_file(directory: Path, **settings: str) -> Path:
    path = directory / "server.properties"
    rows = {**SOUND, **{name.replace("_", "."): value for name, value in settings.items()}}
    path.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
    return path


@pytest.fixture
def few_open_files() -> Iterator[int]:
    """A soft limit that is lower than the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = OPEN_FILES_BESIDE_LOGS + 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        yield low
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_sound_file_on_loopback_is_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read_config(a_file(tmp_path)).broker_id == 1
    assert caplog.messages == []


def test_unknown_settings_are_one_warning_with_their_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_config(a_file(tmp_path, no_such_thing="1", neither_this="2"))

    (warning,) = caplog.messages
    assert "no.such.thing" in warning
    assert "neither.this" in warning


def test_plaintext_for_other_machines_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = "ONE://0.0.0.0:9092,TWO://127.0.0.1:9093"
    protocols = "ONE:PLAINTEXT,TWO:PLAINTEXT"
    path = a_file(
        tmp_path,
        listeners=listeners,
        listener_security_protocol_map=protocols,
        inter_broker_listener_name="TWO",
        advertised_listeners="ONE://outside:9092,TWO://127.0.0.1:9093",
    )

    read_config(path)

    (warning,) = caplog.messages
    assert "ONE://0.0.0.0:9092" in warning
    assert "TWO" not in warning


def test_refusal_lists_everything_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(BrokerRefused) as refused:
        read_config(
            a_file(tmp_path, num_partitions="many", log_retention_ms="x", authorizer_class_name="a.B")
        )

    for name in ("num.partitions", "log.retention.ms", "authorizer.class.name"):
        assert name in str(refused.value)


def test_file_that_is_not_there_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(BrokerRefused, match=r"nowhere\.properties cannot be read"):
        read_config(tmp_path / "nowhere.properties")


def test_soft_limit_of_open_files_is_raised_to_the_hard_one(few_open_files: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    raise_open_files_limit()

    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_limit_too_low_for_the_logs_is_one_warning(
    few_open_files: int, caplog: pytest.LogCaptureFixture
) -> None:
    warn_about_open_files(10)
    assert caplog.messages == []

    warn_about_open_files(11)
    (warning,) = caplog.messages
    assert f"limit={few_open_files} logs=11" in warning


def test_the_end_of_the_terminal_counts_unless_it_was_ruled_out() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert signal.SIGHUP in end_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert end_signals() == [signal.SIGTERM, signal.SIGINT]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_overrides_count_more_than_the_file(tmp_path: Path) -> None:
    assert read_config(a_file(tmp_path), {"broker.id": "7"}).broker_id == 7


@pytest.mark.parametrize("words", [[], ["f", "--override"], ["f", "--other", "a=b"]])
def test_words_that_make_no_sense_are_answered_with_the_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("usage: ottla broker")


def test_a_terminal_that_ends_twice_does_not_cut_the_shutdown_short(tmp_path: Path) -> None:
    asked: list[str] = []
    process = BrokerProcess(read_config(a_file(tmp_path)))
    process.edge = cast(Edge, SimpleNamespace(begin_shutdown=lambda: asked.append("asked")))

    for number in (signal.SIGHUP, signal.SIGHUP):
        process._asked_to_end(number)
    assert asked == ["asked"]
    process._asked_to_end(signal.SIGTERM)

    assert asked == ["asked", "asked"]
