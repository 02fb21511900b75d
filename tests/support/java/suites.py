"""Tests that others wrote in Java, run over Ottla's keeper or over the Java server that they would start.

A suite is a text file beside its sources: a section of classes to run, then a section for each reason why
something is left out, with classes or methods (``Class#method``) below it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.processes.java_process import dies_with_its_parent
from support.processes.lab import ROOT, built_once, copy_jars, lab_dir, require_command

HERE = Path(__file__).with_name("keeper")
RUN = "run"
METHOD_SECONDS_MAX = 180
SUPER_DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
"""As ZooKeeper's own build sets it: the password is *test*."""
QUIET = "log4j.rootLogger=OFF\n"
LOGBACK = '<configuration><root level="OFF"/></configuration>\n'


@dataclass(frozen=True, slots=True)
class Suite:
    """What is run, and what is known to fail over one keeper, by its reason."""

    name: str
    classes: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def runnable(self) -> list[str]:
        """Classes that are not left out as a whole."""
        return [name for name in self.classes if name not in self.left_out]

    def unexpected(self, failed: set[str]) -> set[str]:
        """Failures that nobody listed."""
        return {each for each in failed if each not in self.left_out}


def read_suite(name: str) -> Suite:
    """The list of one suite."""
    classes: list[str] = []
    left_out: dict[str, str] = {}
    section = ""
    for line in (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and section == RUN:
            classes.append(line)
        elif line:
            left_out[line] = section
    return Suite(name, tuple(classes), left_out)


@cache
def suite_jars(name: str) -> Path:
    """The jars of a suite, out of Maven."""
    pom = ROOT / "tools" / "lab" / f"{name}-tests.xml"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    return built_once(lab_dir() / f"jars-{digest}", lambda target: copy_jars(pom, target))


@cache
def over_keeper(name: str) -> Path:
    """Classes that stand before the suite's own, so that it starts keepers."""
    jars, javac = suite_jars(name), require_command("javac")
    sources = [file for file in sorted(HERE.glob("*.java")) if name == "zookeeper" or "JMX" not in file.name]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in sources) + bytes(jars)).hexdigest()[:12]

    def build(target: Path) -> None:
        words = [javac, "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", target, *sources]
        subprocess.run(list(map(str, words)), check=True, timeout=180)

    return built_once(lab_dir() / f"classes-keeper-{name}-{digest}", build)


def run_suite(
    suite: Suite, place: Path, *, keeper: bool, seconds_max: float, only: tuple[str, ...] = ()
) -> tuple[set[str], int]:
    """Which tests failed, as ``Class#method``, and how many ran. A JVM a class: they set its properties."""
    (place / "log4j.properties").write_text(QUIET)
    (place / "logback.xml").write_text(LOGBACK)
    failed: set[str] = set()
    count = 0
    for name in only or suite.runnable:
        found, ran = read_report(_run_class(suite, name, place, keeper=keeper, seconds_max=seconds_max))
        failed |= found
        count += ran
    return failed, count


def _run_class(suite: Suite, name: str, place: Path, *, keeper: bool, seconds_max: float) -> Path:
    """The report of one class."""
    reports = place / "reports" / name
    paths = [place, *([over_keeper(suite.name)] if keeper else []), suite_jars(suite.name) / "*"]
    settings = {
        "ottla.python": sys.executable,
        "build.test.dir": place / "build",
        "java.io.tmpdir": place,
        "zookeeper.admin.enableServer": "false",
        "zookeeper.4lw.commands.whitelist": "*",
        "zookeeper.DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
        "junit.jupiter.execution.timeout.default": f"{METHOD_SECONDS_MAX} s",
    }
    command = [
        *(require_command("java"), "-Xmx512m", *(f"-D{key}={value}" for key, value in settings.items())),
        *("-cp", os.pathsep.join(map(str, paths)), "org.junit.platform.console.ConsoleLauncher", "execute"),
        *(f"--select-class={name}", "--disable-banner", "--details=none", f"--reports-dir={reports}"),
    ]
    output = place / "output"
    with output.open("wb") as printed:
        process = subprocess.Popen(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            preexec_fn=dies_with_its_parent,
            start_new_session=True,
        )
        try:
            process.wait(seconds_max)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and the keepers that it left behind
            process.wait()
    report = reports / "TEST-junit-jupiter.xml"
    assert report.exists(), f"{name}: {output.read_text(errors='replace')[-4000:]}"
    return report


def read_report(report: Path) -> tuple[set[str], int]:
    """The failures of a JUnit report, and how many tests it tells of."""
    failed, count = set(), 0
    for case in ET.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        count += 1
        if case.find("failure") is not None or case.find("error") is not None:
            method = str(case.get("name")).partition("(")[0].partition("{")[0]
            failed.add(f"{case.get('classname')}#{method}")
    return failed, count
