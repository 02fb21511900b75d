"""The programs on the page about the client, run from top to bottom on one cluster."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ottla.testing import start_cluster
from support.running.documented import programs_of

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_the_programs_run_and_find_what_the_others_wrote(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []

    with start_cluster(brokers=1, settings={"transaction.two.phase.commit.enable": "true"}) as ottla:
        for program in programs_of(repository / "docs" / "client.md"):
            file = tmp_path / "typed.py"
            file.write_text(program.replace("127.0.0.1:9092", ottla.bootstrap_servers), encoding="utf-8")
            runpy.run_path(str(file), run_name="__main__")
            printed.append(capsys.readouterr().out)

    assert printed[0].startswith("orders-")
    assert printed[1].startswith("orders-")
    assert "this member reads" in printed[2]
    assert "billed" in printed[3]
    assert "a hat" in printed[5]
    assert "orders NONE" in printed[6]
    assert "orders-" in printed[6], "the group has committed"
