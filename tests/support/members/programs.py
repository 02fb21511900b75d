"""How to start a member of each kind: built once into the lab directory, from pinned versions.

Every program takes settings as ``name=value`` and says on its standard output, a line each:
``assigned 0,2`` (newly its own; ``-`` for none), ``revoked 0``, ``record partition offset value``,
``committed partition offset`` (acknowledged), ``uncommitted reason``, ``unpolled reason`` (it goes on),
``failed reason`` and ``left``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.java_process import QUICK_START
from support.lab import built_once, copy_jars, kafka_jars, lab_dir, require_command

HERE = Path(__file__).resolve().parent
BUILD_SECONDS_MAX = 600
ALL_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of client, and what it can do."""

    name: str
    command: Callable[[], list[str]]
    strategies: tuple[str, ...]
    may_be_static: bool = True


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _run(command: list[str], directory: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise RuntimeError(f"{command[0]} failed with exit code {done.returncode}:\n{said}")


@cache
def _jars_of(kind: str) -> Path:
    """The jars that ``<kind>/pom.xml`` names."""
    pom = HERE / kind / "pom.xml"
    return built_once(lab_dir() / f"{kind}-client-{_digest(pom)}", lambda target: copy_jars(pom, target))


def _java(source: Path, jars: Path) -> list[str]:
    """A program of one file, compiled with the jars beside it and run with those given."""
    java, javac = require_command("java"), require_command("javac")

    def build(target: Path) -> None:
        class_path = f"{_jars_of(source.parent.name)}/*"
        _run([javac, "-nowarn", "-proc:none", "-cp", class_path, "-d", str(target), str(source)], HERE)
        (target / "log4j.properties").write_text("log4j.rootLogger=OFF\n")

    classes = built_once(lab_dir() / f"{source.parent.name}-member-{_digest(source)}", build)
    class_path = f"{classes}{os.pathsep}{jars}/*"
    return [java, "-Xmx96m", *QUICK_START, "-cp", class_path, source.stem]


def _java_member(jars: Callable[[], Path]) -> list[str]:
    return _java(HERE / "java" / "GroupMember.java", jars())


def kafka_streams() -> list[str]:
    """An application on Kafka Streams; what it says is in its source."""
    return _java(HERE / "streams" / "WordCount.java", _jars_of("streams"))


def _kafkajs() -> list[str]:
    node, npm = require_command("node"), require_command("npm")
    files = [HERE / "kafkajs" / name for name in ("package.json", "package-lock.json", "member.js")]

    def build(target: Path) -> None:
        for file in files:
            shutil.copy(file, target)
        _run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], target)

    return [node, str(built_once(lab_dir() / f"kafkajs-member-{_digest(*files)}", build) / "member.js")]


def _franz_go() -> list[str]:
    go = require_command("go")
    files = [HERE / "franz_go" / name for name in ("go.mod", "go.sum", "member.go")]

    def build(target: Path) -> None:
        command = [go, "build", "-o", str(target / "member"), "."]
        _run(command, HERE / "franz_go", GOFLAGS="-mod=readonly", CGO_ENABLED="0")

    return [str(built_once(lab_dir() / f"franz-go-member-{_digest(*files)}", build) / "member")]


def _python(script: str) -> list[str]:
    return [sys.executable, str(HERE / script)]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("ottla", lambda: _python("with_ottla.py"), ALL_STRATEGIES),
        Kind("java-4", lambda: _java_member(lambda: _jars_of("java")), ALL_STRATEGIES),
        Kind("java-3.9", lambda: _java_member(kafka_jars), ALL_STRATEGIES),
        Kind("kafkajs", _kafkajs, ("roundrobin",), may_be_static=False),
        Kind("franz-go", _franz_go, ALL_STRATEGIES),
        Kind(
            "librdkafka", lambda: _python("with_librdkafka.py"), ("range", "roundrobin", "cooperative-sticky")
        ),
        Kind("kafka-python", lambda: _python("with_kafka_python.py"), ALL_STRATEGIES),
        Kind(
            "aiokafka",
            lambda: _python("with_aiokafka.py"),
            ("range", "roundrobin", "sticky"),
        ),
    )
}
