"""What nobody would type on purpose ends with a sentence: absurd numbers, closed streams."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest
import typer

from ottla.cli import main
from ottla.cli.shared import connection
from ottla.cli.shared.refusal import CommandRefused


def test_a_number_that_no_request_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.Client, "run", lambda *_arguments: None)

    with (
        pytest.raises(CommandRefused, match="a number does not fit into Kafka's protocol"),
        connection.connected("127.0.0.1:1"),
    ):
        struct.pack(">i", 3_000_000_000)


def test_streams_that_the_shell_closed_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    main._open_closed_streams()
    streams = (sys.stdin, sys.stdout, sys.stderr)

    typer.echo("unheard")

    assert streams[0].read() == ""
    for stream in streams:
        stream.close()


@pytest.mark.slow
def test_a_command_whose_streams_are_closed() -> None:
    words = f"{sys.executable} -P -m ottla.cli.main watch --bootstrap-server 127.0.0.1:1 <&- >&-"

    ran = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr.startswith("ottla: no broker answers")) == (1, True), ran.stderr
