"""Brokers forked from a warmed process live and die as those that are started one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from ottla.launch.forking.forked import ForkedProcess, WarmProcess
from ottla.launch.ports import free_ports
from ottla.launch.processes import is_frozen
from ottla.launch.refusal import LaunchRefused
from support.running.waiting import wait_until

# No ZooKeeper listens there: the broker tries for a long time, which is all the life these tests need.
SETTINGS = """\
broker.id=7
listeners=PLAINTEXT://127.0.0.1:0
log.dirs={directory}/logs
zookeeper.connect=127.0.0.1:{port}
zookeeper.connection.timeout.ms=600000
"""

PARENT = """
import json, sys, time
from pathlib import Path
from ottla.launch.forking.forked import WarmProcess

directory = Path(sys.argv[1])
warm = WarmProcess(directory / "warm.out")
broker = warm.fork([sys.argv[2]], output=directory / "out", grace_s=2.0)
{extra}
print(json.dumps({{"broker": broker.pid, "warm": warm._process.pid}}), flush=True)
time.sleep(600)
"""
FORK_THAT_KEEPS_THE_SOCKETS = "import os\nif os.fork() == 0: time.sleep(20); os._exit(0)"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(SETTINGS.format(directory=tmp_path, port=free_ports(1)[0]))
    return file


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[WarmProcess]:
    process = WarmProcess(tmp_path / "warm.out")
    yield process
    process.stop()


@pytest.fixture
def broker(warm: WarmProcess, settings: Path, tmp_path: Path) -> Iterator[ForkedProcess]:
    with warm.fork([str(settings)], output=tmp_path / "broker.log", grace_s=2.0) as process:
        wait_until(lambda: "connecting to zookeeper" in process.output.read_text(), "it runs")
        yield process


@pytest.mark.parametrize("extra", ["", FORK_THAT_KEEPS_THE_SOCKETS], ids=["alone", "with a fork"])
def test_all_end_when_the_one_who_asked_is_killed(tmp_path: Path, settings: Path, extra: str) -> None:
    command = [sys.executable, "-c", PARENT.format(extra=extra), tmp_path, settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            pids = json.loads(process.stdout.readline())
            pids["guard"] = parent_of(pids["broker"])

            process.kill()
            process.wait()

            wait_until(lambda: not any(map(is_running, pids.values())), "all three are gone")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_it_ends_with_its_guard(broker: ForkedProcess) -> None:
    os.kill(parent_of(broker.pid), signal.SIGKILL)

    wait_until(lambda: not is_running(broker.pid), "the broker is gone")
    assert broker.exit_code() == 128 + signal.SIGKILL


def test_it_outlives_the_process_that_forked_it(warm: WarmProcess, broker: ForkedProcess) -> None:
    warm._process.kill()
    wait_until(lambda: not warm.is_running, "the warm process is gone")

    assert broker.wait(0.2) is None
    assert broker.stop() == 0, "and it still ends as it was told to"


def test_it_is_the_leader_of_nobody_elses_session(warm: WarmProcess, broker: ForkedProcess) -> None:
    guard = parent_of(broker.pid)

    assert os.getsid(broker.pid) == guard, "Ctrl-C in our terminal does not reach it"
    assert os.getsid(warm._process.pid) == warm._process.pid


def test_a_signal_ends_it_with_its_own_code(broker: ForkedProcess) -> None:
    assert broker.exit_code() is None
    os.kill(broker.pid, signal.SIGTERM)

    assert broker.wait(10) == 0
    assert "exit code=0" in broker.output.read_text()


def test_a_killed_one_is_told_from_one_that_ended(broker: ForkedProcess) -> None:
    assert broker.kill() == 128 + signal.SIGKILL
    assert not is_running(broker.pid)


def test_a_frozen_one_goes_on(broker: ForkedProcess) -> None:
    broker.freeze()
    assert Path(f"/proc/{broker.pid}/stat").read_text().rpartition(") ")[2].startswith("T")

    broker.send(signal.SIGCONT)

    wait_until(lambda: "T" not in Path(f"/proc/{broker.pid}/stat").read_text().rpartition(") ")[2], "it runs")


def test_ps_shows_what_it_is(broker: ForkedProcess, settings: Path) -> None:
    words = Path(f"/proc/{broker.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")

    assert words == [b"ottla", b"broker", os.fsencode(settings)]


def test_a_refusal_is_in_its_log_and_its_exit_code(warm: WarmProcess, tmp_path: Path) -> None:
    broker = warm.fork([str(tmp_path / "missing")], output=tmp_path / "broker.log", grace_s=2.0)

    assert broker.wait(10) == 1
    assert "cannot be read" in broker.output.read_text()


def test_a_warm_process_that_cannot_import_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "msgspec.py").write_text("raise ImportError('msgspec is broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    warm = WarmProcess(tmp_path / "warm.out")

    with pytest.raises(LaunchRefused, match=r"msgspec is broken.*its output is .*warm\.out"):
        warm.fork([str(settings)], output=tmp_path / "broker.log", grace_s=2.0)
    warm.stop()


def test_a_frozen_one_ends_all_the_same(tmp_path: Path) -> None:
    warm = WarmProcess(tmp_path / "warm.out")
    os.kill(warm._process.pid, signal.SIGSTOP)
    wait_until(lambda: is_frozen(warm._process.pid), "the signal has come")
    stopping = Thread(target=warm.stop, daemon=True)

    stopping.start()
    stopping.join(30)

    ended = not stopping.is_alive()
    with suppress(ProcessLookupError):
        os.kill(warm._process.pid, signal.SIGCONT)
    assert ended
