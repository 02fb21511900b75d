"""The lab directory: Apache Kafka's jars from Maven and the compiled Java oracles, fetched once and shared.

``OTTLA_LAB`` names another directory than ``.lab`` in the clone. Several processes may ask at once:
whoever comes first works under a file lock, into a temporary directory that is renamed when it is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = ROOT / "tools" / "lab" / "pom.xml"
OLD_POM = ROOT / "tools" / "lab" / "old.xml"
KRAFT_POM = ROOT / "tools" / "lab" / "kraft.xml"
JAVA_SOURCES = ROOT / "tests" / "support" / "java"
MAVEN_SECONDS_MAX = 600
JAVAC_SECONDS_MAX = 180


def lab_dir() -> Path:
    """Where the lab keeps what it fetched."""
    return Path(os.environ.get("OTTLA_LAB") or ROOT / ".lab")


def unavailable(reason: str) -> NoReturn:
    """Skip the test with one line, or fail it where an absent judge must not go unnoticed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the Apache lab is missing: {reason}", pytrace=False)
    pytest.skip(f"no Apache lab: {reason}")


def require_command(name: str) -> str:
    """The path of a program, or a skipped test."""
    return shutil.which(name) or unavailable(f"{name} is not on the PATH")


@cache
def kafka_jars() -> Path:
    """The directory of Apache Kafka 3.9.1's jars."""
    return _jars_of(POM)


@cache
def old_kafka_jars() -> Path:
    """The directory of Kafka 2.8.2's jars: the last release whose tools write to ZooKeeper themselves."""
    return _jars_of(OLD_POM)


@cache
def kraft_jars() -> Path:
    """The directory of Kafka 4.3.1's jars, for a cluster without ZooKeeper."""
    return _jars_of(KRAFT_POM)


def _jars_of(pom: Path) -> Path:
    require_command("java")
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    return built_once(lab_dir() / f"jars-{digest}", lambda target: copy_jars(pom, target))


@cache
def compiled(source: str) -> Path:
    """The classes of ``tests/support/java/<source>.java`` and of the harness that runs it."""
    javac = require_command("javac")
    jars = kafka_jars()
    files = [JAVA_SOURCES / "Harness.java", JAVA_SOURCES / f"{source}.java"]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files) + str(jars).encode()).hexdigest()[
        :12
    ]

    def compile_into(target: Path) -> None:
        command = [javac, "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(target), *map(str, files)]
        _run(command, JAVAC_SECONDS_MAX, f"javac {source}.java")
        # Found on the class path by log4j: an oracle answers, it does not talk.
        (target / "log4j.properties").write_text("log4j.rootLogger=OFF\n")

    return built_once(lab_dir() / f"classes-{source}-{digest}", compile_into)


def copy_jars(pom: Path, target: Path) -> None:
    """The jars that a project file names, and those they need."""
    run_maven("-f", str(pom), f"{MAVEN_PLUGIN}:copy-dependencies", f"-DoutputDirectory={target}")


def run_maven(*words: str) -> None:
    """One Maven at a time: two that fill the same empty repository spoil it for each other."""
    maven = shutil.which("mvn") or unavailable(
        "mvn is not on the PATH and the jars are not in the lab directory"
    )
    with _locked(lab_dir() / "maven.lock"):
        _run([maven, "-q", "-B", *words], MAVEN_SECONDS_MAX, f"maven {' '.join(words)}")


def _run(command: list[str], seconds_max: int, what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max, check=False)
    if done.returncode != 0:
        tail = (done.stdout + done.stderr).strip()[-3000:]
        raise RuntimeError(f"{what} failed with exit code {done.returncode}:\n{tail}")


def built_once(target: Path, build: Callable[[Path], None]) -> Path:
    """A directory of the lab; the first who asks for it builds it, whole or not at all."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f"{target.name}.lock"):
        if not target.is_dir():
            unfinished = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
            try:
                build(unfinished)
                unfinished.chmod(0o755)
                unfinished.rename(target)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
