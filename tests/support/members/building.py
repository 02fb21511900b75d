"""Programs in other languages, built once into the lab directory from pinned versions."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from support.processes.java_process import QUICK_START
from support.processes.lab import built_once, copy_jars, lab_dir, require_command

BUILD_SECONDS_MAX = 600


@cache
def jars_of(pom: Path) -> Path:
    """The jars that ``<directory>/pom.xml`` names; they are called after the directory."""
    return built_once(
        lab_dir() / f"{pom.parent.name}-client-{_digest(pom)}", lambda into: copy_jars(pom, into)
    )


def java_program(source: Path, built_with: Path, run_with: Path) -> list[str]:
    """A program of one file, compiled with one directory of jars and run with that or another."""
    java, javac = require_command("java"), require_command("javac")

    def build(target: Path) -> None:
        _run(
            [javac, "-nowarn", "-proc:none", "-cp", f"{built_with}/*", "-d", str(target), str(source)], target
        )
        (target / "log4j.properties").write_text("log4j.rootLogger=OFF\n")

    name = f"{source.parent.name}-{source.stem.lower()}-{_digest(source)}-{built_with.name}"
    class_path = f"{built_once(lab_dir() / name, build)}{os.pathsep}{run_with}/*"
    return [java, "-Xmx96m", *QUICK_START, "-cp", class_path, source.stem]


def node_program(directory: Path, program: str) -> list[str]:
    """A program with the packages that its lock file names."""
    node, npm = require_command("node"), require_command("npm")
    files = [directory / name for name in ("package.json", "package-lock.json", program)]

    def build(target: Path) -> None:
        for file in files:
            shutil.copy(file, target)
        _run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], target)

    return [node, str(built_once(lab_dir() / f"{directory.name}-{_digest(*files)}", build) / program)]


def go_program(directory: Path, program: str) -> list[str]:
    """A program of one file, with the modules that its ``go.sum`` names."""
    go = require_command("go")
    files = [directory / name for name in ("go.mod", "go.sum", program)]

    def build(target: Path) -> None:
        command = [go, "build", "-o", str(target / "program"), "."]
        _run(command, directory, GOFLAGS="-mod=readonly", CGO_ENABLED="0")

    return [str(built_once(lab_dir() / f"{directory.name}-{_digest(*files)}", build) / "program")]


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
