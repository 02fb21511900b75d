"""``make run`` on a fresh machine: the demo waits for the command that installs Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ottla.cli.local.demo import Demo
from support.running.waiting import wait_until

SETTING_UP = "print('set-up [4/4]: installing Spark'); print('set-up: .venv is up to date')"


def told(demo: Demo, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that it says until it is over."""
    lines: list[str] = []

    def is_over() -> bool:
        demo.tell_news()
        lines.extend(capsys.readouterr().out.splitlines())
        return bool(lines) and lines[-1].endswith("the cluster goes on running")

    wait_until(is_over, "the demo is over")
    return lines


def test_set_up_is_shown_and_then_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = Demo("127.0.0.1:9", tmp_path, [sys.executable, "-c", SETTING_UP])
    demo._command = ["echo", "counted"]

    assert told(demo, capsys) == [
        "pipeline: set-up [4/4]: installing Spark",
        "pipeline: counted",
        "pipeline: that was `ottla pipeline demo`; the cluster goes on running",
    ]


def test_a_set_up_that_fails_ends_the_demo_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = Demo("127.0.0.1:9", tmp_path, ["sh", "-c", "echo no network; exit 1"])
    demo._command = ["echo", "counted"]

    assert told(demo, capsys) == [
        "pipeline: no network",
        "pipeline: set-up ended with exit code 1; the cluster goes on running",
    ]
