"""``ottla doctor``: what is looked at, and what to do about it."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from ottla.launch import java
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper import jars
from support.processes.commands import run_here


def a_free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return str(taken.getsockname()[1])


def lines_about(what: str, data_dir: Path) -> list[str]:
    ran = run_here("doctor", "--data-dir", str(data_dir), "--brokers", "1", "--port", a_free_port())
    return [line for line in ran.lines if what in line]


@pytest.mark.parametrize(("hard", "verdict"), [(524_288, "ok"), (1_024, "BAD"), (-1, "ok")])
def test_brokers_raise_the_soft_limit_so_only_the_hard_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: int, verdict: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1_024, hard))

    [line] = lines_about("open files", tmp_path)

    assert line.startswith(verdict)


def test_a_directory_that_cannot_be_written_to_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lines_about("disk:", tmp_path / "new")[0].startswith("ok")
    (tmp_path / "file").touch()
    assert lines_about("disk:", tmp_path / "file" / "below")[0].startswith("BAD")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK | os.X_OK and access(path, how))
    assert lines_about("disk:", tmp_path)[0].startswith("BAD")


def test_jars_that_are_damaged_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged() -> list[Path]:
        raise LaunchRefused("damaged")

    monkeypatch.setattr(jars, "jars_here", damaged)

    assert lines_about("ZooKeeper", tmp_path) == ["BAD  ZooKeeper: damaged"]


def test_jars_that_are_not_here_will_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "jars_here", list)

    [line] = lines_about("ZooKeeper", tmp_path)
    assert line.startswith("ok   ZooKeeper 3.9.")
    assert "fetched when it is first started" in line


def test_a_machine_without_java_is_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "java_candidates", lambda _environ: iter(()))

    [line] = lines_about("Java", tmp_path)
    assert line.startswith("ok   Java: none that is fit; `ottla up` needs none")
    assert "pip install 'ottla[java]'" in line
