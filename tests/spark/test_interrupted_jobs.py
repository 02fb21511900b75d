"""A job that is interrupted says in one line what it leaves, and leaves no process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from support.processes.commands import ottla_command, run_command
from support.processes.descendants import descendants, is_alive
from support.processes.terminal import CTRL_C, Terminal
from support.running.waiting import wait_until

pytestmark = [
    pytest.mark.full("starts a Spark of its own"),
    pytest.mark.slow,
    pytest.mark.java,
]

RECORDS = 20_000


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> str:
    """A cluster with some records to work on."""
    with Client(cluster.bootstrap_servers) as client:
        names = ("long", "long-again", "long-dead")
        client.run(create_topics, [a_topic(name, partitions=2, replication_factor=1) for name in names])
        producer = client.producer()
        for n in range(RECORDS):
            producer.send("long", b'{"id": %d}' % n, partition=n % 2)
        producer.flush()
    return cluster.bootstrap_servers


def press_ctrl_c(terminal: Terminal) -> None:
    terminal.press(CTRL_C)


def send_sigterm(terminal: Terminal) -> None:
    os.kill(terminal.process.pid, signal.SIGTERM)


def has_java(pid: int) -> bool:
    """Whether one of the processes below is Java already."""
    with suppress(FileNotFoundError):  # One of them has ended meanwhile.
        return any(b"java" in Path(f"/proc/{below}/cmdline").read_bytes() for below in descendants(pid))
    return False


def interrupted(terminal: Terminal, interrupt: Callable[[Terminal], None], code: int) -> str:
    """Interrupt it; the one line that it says then."""
    before = len(terminal.shown)
    below = descendants(terminal.process.pid)
    interrupt(terminal)
    assert terminal.await_end() == code, terminal.shown
    wait_until(lambda: not any(map(is_alive, below)), "nothing is left of it", 30)
    lines = [line for line in terminal.shown[before:].replace("^C", "").splitlines() if line]
    told = [line for line in lines if not line.startswith(("batch ", "starting Spark", "Spark runs"))]
    assert len(told) == 1, terminal.shown
    return told[0]


@pytest.mark.parametrize(("interrupt", "code"), [(press_ctrl_c, 130), (send_sigterm, 143)])
def test_a_job_that_is_interrupted_while_java_starts_has_written_nothing(
    interrupt: Callable[[Terminal], None], code: int, servers: str, tmp_path: Path
) -> None:
    words = ("--topics", "long", "--to", "archive", "--bootstrap-server", servers)

    with Terminal(ottla_command("pipeline", "run", "archive", *words), tmp_path) as terminal:
        terminal.await_text("starting Spark")
        wait_until(lambda: has_java(terminal.process.pid), "Java is starting", 60)

        assert interrupted(terminal, interrupt, code) == "ottla: interrupted; nothing was written"


@pytest.mark.parametrize(("interrupt", "code"), [(press_ctrl_c, 130), (send_sigterm, 143)])
def test_a_stream_that_is_interrupted_tells_its_records_and_its_checkpoint(
    interrupt: Callable[[Terminal], None], code: int, servers: str, tmp_path: Path
) -> None:
    words = ["--topic", "long", "--schema", "id BIGINT NOT NULL", "--dead-letter-topic", "long-dead"]
    words += ["--checkpoint", "kept", "--follow", "1", "--bootstrap-server", servers]

    with Terminal(ottla_command("pipeline", "run", "validate", *words), tmp_path) as terminal:
        terminal.await_text("batch 0: ")

        assert interrupted(terminal, interrupt, code) == (
            f"ottla: interrupted; {RECORDS} records are done, in whole batches, as noted in kept; "
            "the same command goes on from there"
        )


def test_a_batch_that_is_interrupted_tells_what_another_run_does(servers: str, tmp_path: Path) -> None:
    at = ("--bootstrap-server", servers)
    archive = str(tmp_path / "archive")
    run_command("pipeline", "run", "archive", "--topics", "long", "--to", archive, *at)
    words = ("--from", archive, "--topic", "long-again", *at)

    with Terminal(ottla_command("pipeline", "run", "replay", *words), tmp_path) as terminal:
        terminal.await_text("records to replay")

        assert interrupted(terminal, press_ctrl_c, 130) == (
            f"ottla: interrupted; some of {RECORDS} records may be in long-again;"
            " another run writes all again"
        )
