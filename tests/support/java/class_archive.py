"""Apache's classes as a JVM maps them into memory: parsed and verified once, not at every start.

A broker or a tool needs half the processor time to be up. The JVM takes an archive only with the very jars
that it was made from, and starts without it otherwise.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from support.processes.java_process import JavaProcess, java_command
from support.processes.lab import built_once, kafka_jars, lab_dir, require_command
from support.processes.ports import free_port

TRAINING_SECONDS_MAX = 120
QUIET = "log4j.rootLogger=OFF\n"
TOPIC = "trained"
ARCHIVE = "kafka.jsa"


@cache
def archive_flags() -> tuple[str, ...]:
    """What a JVM on Apache's jars is started with, so that it finds their classes ready."""
    runtime = Path(require_command("java")).resolve()
    made_from = f"{runtime} {runtime.stat().st_mtime_ns} {kafka_jars()}"
    digest = hashlib.sha256(made_from.encode()).hexdigest()[:12]
    archive = built_once(lab_dir() / f"archive-{digest}", _build) / ARCHIVE
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")


def _build(target: Path) -> None:
    """Record what a server, a broker and three tools load; archive all of it."""
    with tempfile.TemporaryDirectory(prefix="training-") as name:
        directory = Path(name)
        _train(directory)
        lists = [file.read_text().splitlines() for file in directory.glob("*.classes")]
        wanted = sorted({line for lines in lists for line in lines if not line.startswith("#")})
        (directory / "all").write_text("\n".join(wanted) + "\n")
        flags = (
            "-Xshare:dump",
            "-Xlog:disable",
            f"-XX:SharedClassListFile={directory / 'all'}",
            f"-XX:SharedArchiveFile={target / ARCHIVE}",
        )
        _finish("the archive", java_command("none", flags=flags))


def _train(directory: Path) -> None:
    (directory / "log4j.properties").write_text(QUIET)
    zookeeper_port, port = free_port(), free_port()

    def command(name: str, main_class: str, *words: str) -> list[str]:
        flags = (
            f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}",
            f"-XX:DumpLoadedClassList={directory / name}.classes",
        )
        return java_command(main_class, *words, flags=flags)

    def settings(name: str, *lines: str) -> str:
        (directory / name).write_text("\n".join(lines) + "\n")
        return str(directory / name)

    zookeeper = settings("zookeeper", f"dataDir={directory / 'znodes'}", f"clientPort={zookeeper_port}")
    broker = settings(
        "broker",
        "broker.id=1",
        f"zookeeper.connect=127.0.0.1:{zookeeper_port}",
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"log.dirs={directory / 'logs'}",
        "offsets.topic.replication.factor=1",
        "offsets.topic.num.partitions=1",
    )
    at = ("--bootstrap-server", f"127.0.0.1:{port}", "--topic", TOPIC)
    servers = [
        JavaProcess(
            command("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper),
            directory / "zookeeper.log",
        ),
        JavaProcess(command("broker", "kafka.Kafka", broker), directory / "broker.log"),
    ]
    try:
        create = ("org.apache.kafka.tools.TopicCommand", *at, "--create")
        _finish("a topic", command("topics", *create))
        _finish("a record", command("producer", "kafka.tools.ConsoleProducer", *at), "word\n")
        reader = ("org.apache.kafka.tools.consumer.ConsoleConsumer", *at, "--from-beginning")
        _finish("its reader", command("consumer", *reader, "--max-messages", "1"))
        servers.reverse()
    finally:
        for server in servers:
            server.terminate()


def _finish(what: str, command: list[str], said: str = "") -> None:
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=TRAINING_SECONDS_MAX, check=False
    )
    assert done.returncode == 0, f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}"[-3000:]
