"""``ottla broker`` and ``ottla zookeeper`` as Kafka's start scripts are called, and the stop scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.launch import embedded_zookeeper, java
from support.processes.commands import run_here
from support.running.waiting import wait_until

STOCK_ZOOKEEPER = "dataDir=/tmp/zookeeper\nclientPort=2182\nmaxClientCnxns=0\nadmin.enableServer=false\n"


def test_overrides_reach_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    become: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _path, words: become.append(words))

    run_here("broker", "server.properties", "--override", "broker.id=2", "--override", "log.dirs=/a=b")

    overrides = ["--override", "broker.id=2", "--override", "log.dirs=/a=b"]
    assert become == [[sys.executable, "-P", "-m", "ottla.server", "server.properties", *overrides]]
    assert run_here("broker", "server.properties", "--override", "nothing").exit_code == 2


@pytest.mark.slow
def test_a_broker_in_the_background_writes_kafkas_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "logs"))

    ran = run_here("broker", "-daemon", str(tmp_path / "none.properties"))

    log = tmp_path / "logs" / "kafkaServer.out"
    assert (ran.exit_code, ran.stdout.endswith(f"its log is {log}\n")) == (0, True)
    wait_until(lambda: "none.properties cannot be read" in log.read_text(), "it has said why it ends")


class ServerInName:
    """What ``ottla zookeeper`` asked for."""

    made: list[tuple[Path, int, dict[str, str]]]

    def __init__(self, data_dir: Path, *, port: int, settings: dict[str, str], java: object) -> None:
        self.data_dir, self.port = data_dir, port
        self.version = self.connect = self.log = ""
        ServerInName.made.append((data_dir, port, settings))

    def __enter__(self) -> ServerInName:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def wait(self) -> int:
        return 0


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int, dict[str, str]]]:
    ServerInName.made = []
    monkeypatch.setattr(embedded_zookeeper, "EmbeddedZooKeeper", ServerInName)
    found: Any = SimpleNamespace(version="", executable="")
    monkeypatch.setattr(java, "find_java", lambda: found)
    return ServerInName.made


def test_kafkas_own_file_of_zookeeper_is_taken(
    tmp_path: Path, servers: list[tuple[Path, int, dict[str, str]]]
) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text(STOCK_ZOOKEEPER)
    others = {"maxClientCnxns": "0", "admin.enableServer": "false"}

    run_here("zookeeper")
    run_here("zookeeper", str(file))
    run_here("zookeeper", str(file), "--port", "0", "--data-dir", "elsewhere")

    assert servers == [
        (Path("ottla-data/zookeeper"), 2181, {}),
        (Path("/tmp/zookeeper"), 2182, others),
        (Path("elsewhere"), 0, others),
    ]


@pytest.mark.parametrize(
    ("line", "word"),
    [("server.1=a:1:2", "ensemble"), ("clientPortAddress=0.0.0.0", "alone"), ("clientPort=x", "not a port")],
)
def test_a_file_that_asks_for_more_is_refused(tmp_path: Path, line: str, word: str) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text(line)

    ran = run_here("zookeeper", str(file))

    assert (ran.exit_code, word in ran.stderr) == (1, True), ran.stderr


@pytest.mark.parametrize(
    ("script", "what", "ours", "others"),
    [
        (
            "kafka-server-stop.sh",
            "kafka",
            ["/usr/bin/python3 -P -m ottla.server server.properties"],
            ["python -I -S guard.py 3 5 1 python -P -m ottla.server a.properties", "vi ottla.server"],
        ),
        (
            "zookeeper-server-stop.sh",
            "zookeeper",
            ["python -P -m ottla.cli.main zookeeper z.properties", "python /opt/bin/ottla zookeeper"],
            ["python /opt/bin/ottla zookeeper-shell", "python /opt/bin/ottla up"],
        ),
    ],
)
def test_stop_scripts_end_what_is_ours(
    tmp_path: Path, script: str, what: str, ours: list[str], others: list[str]
) -> None:
    """With signal 0, which ends nobody, and a ``ps`` that shows this process under many names."""
    assert run_here("kafka-scripts", str(tmp_path)).exit_code == 0
    ps = tmp_path / "ps"

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        lines = "".join(f"{os.getpid()} {line}\n" for line in words)
        ps.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\ncat <<'END'\n{lines}END\n")
        ps.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SIGNAL": "0"}
        command = ["sh", "-x", str(tmp_path / script)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    none, some = run(others), run([*others, *ours])

    assert (none.returncode, none.stdout) == (1, f"No {what} server to stop\n")
    assert some.returncode == 0, some.stderr
    assert f"kill -s 0 {' '.join([str(os.getpid())] * len(ours))}\n" in some.stderr
