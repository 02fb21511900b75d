"""``make setup``: makes ``.venv`` in two stages, what a cluster needs and then Spark and the tests.

With ``--cluster`` it stops after the first, some ten megabytes: ``make run`` starts the cluster then, and has
the rest done behind it.
Needs nothing but the standard library, and is written so that a Python too old for Ottla can still read it
and say what to do. All that can be known beforehand is checked before the first download.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "ottla-setup.json"
CLUSTER_STAMP = VENV / "ottla-setup-cluster.json"
BUILD_LOCK = ROOT / "requirements-build.lock"
LOCK = ROOT / "requirements.lock"
INPUTS = (BUILD_LOCK, LOCK, ROOT / "pyproject.toml", Path(__file__).resolve())

OLDEST = (3, 11)
NEWEST = (3, 13)

# Measured in a fresh clone. Temporary are pyspark's archive, its unpacked tree and the wheel built of it, all
# of which pip keeps at the same time; the archive and the wheel then stay in pip's cache.
VENV_BYTES = 1_800 * 2**20
TEMP_BYTES = 2_200 * 2**20
CACHE_BYTES = 1_000 * 2**20
CLUSTER_BYTES = 150 * 2**20
"""What the first stage needs, in each of these places."""

LARGE_BYTES = 50 * 10**6
"""The progress of a download beyond that is told."""
PIP_PROGRESS = ["--progress-bar", "raw"]
PIP_NEWS = ("Collecting", "Building", "Installing", "Successfully", "ERROR")


class SetupRefused(Exception):
    """Something on this machine stands in the way; one sentence with cause and remedy."""


def main(arguments: list[str]) -> int:
    """Bring ``.venv`` up to date, or say in one sentence why that cannot be."""
    try:
        with Path(__file__).open() as own_file:
            fcntl.flock(own_file, fcntl.LOCK_EX)
            set_up(cluster_only="--cluster" in arguments)
    except SetupRefused as refused:
        print(f"make setup: {refused}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmake setup: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


def set_up(cluster_only: bool = False) -> None:
    """Check, then do what is left to do of both stages, or of the first."""
    if is_current(STAMP):
        if not cluster_only:
            print("set-up: .venv is up to date")
        return
    started = time.monotonic()
    if not is_current(CLUSTER_STAMP):
        set_up_cluster(is_alone=cluster_only)
    if not cluster_only:
        set_up_the_rest()
        took_s = time.monotonic() - started
        print(f"set-up: done in {took_s:.0f} s; next: make run, make test, make help")


def set_up_cluster(*, is_alone: bool) -> None:
    """The environment, and in it the clone with the few packages that brokers, tools and console import."""
    python, version = choose_python()
    check_venv_module(python, version)
    check_space(is_alone)
    tell_about_platform()
    if not has_venv(version):
        step(1, f"making .venv with Python {dotted(version)} ({python})")
        run([python, "-m", "venv", "--clear", str(VENV)], "cannot make .venv")
    else:
        step(1, f"keeping .venv with Python {dotted(version)}")
    step(2, "installing pip and the build tools")
    pip_install(["--requirement", str(BUILD_LOCK)])
    step(3, "installing this clone as the command .venv/bin/ottla, with what a cluster and its console need")
    pip_install(["--no-build-isolation", "--constraint", str(LOCK), "--editable", f"{ROOT}[console]"])
    write_stamp(CLUSTER_STAMP, version)


def set_up_the_rest() -> None:
    """Spark, Java and the tests' packages."""
    python = str(VENV / "bin" / "python")
    version = version_of(python)
    if version is None:
        raise SetupRefused(f"{python} does not start any more; remove {VENV} and run make setup again")
    check_space()
    step(4, "installing Spark and what the tests use (pyspark alone is 457 MB: minutes the first time)")
    progress = [] if sys.stdout.isatty() else PIP_PROGRESS
    pip_install(["--no-build-isolation", "--requirement", str(LOCK), *progress])
    write_stamp(STAMP, version, java=report_java())


def write_stamp(stamp: Path, version: tuple[int, int], **more: str) -> None:
    """Note that a stage ended well, and what it depended on."""
    stamp.write_text(json.dumps({"fingerprint": fingerprint(), "python": dotted(version), **more}) + "\n")


def is_current(stamp: Path) -> bool:
    """Whether a stage ended well and nothing it depended on has changed since."""
    try:
        noted = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return False
    usable = (VENV / "bin" / "python").exists() and (VENV / "bin" / "ottla").exists()
    named = os.environ.get("PYTHON", "")
    as_named = not named or dotted(version_of(named) or (0, 0)) == noted.get("python")
    return usable and as_named and noted.get("fingerprint") == fingerprint()


def fingerprint() -> str:
    """Changes with the locks, the project file, this script and the clone's place."""
    digest = hashlib.sha256(str(ROOT).encode())
    for file in INPUTS:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def choose_python() -> tuple[str, tuple[int, int]]:
    """The interpreter for ``.venv``: the one named by PYTHON, its present one, this one, or one on PATH."""
    named = os.environ.get("PYTHON", "")
    if named:
        version = version_of(named)
        if version is None:
            raise SetupRefused(f"PYTHON={named} does not start; name a Python {range_text()} or leave it out")
        if not OLDEST <= version <= NEWEST:
            raise SetupRefused(
                f"PYTHON={named} is {dotted(version)}, but Ottla works with {range_text()}; {how()}"
            )
        return named, version
    present = version_of(str(VENV / "bin" / "python"))
    if present is not None and OLDEST <= present <= NEWEST:
        return str(VENV / "bin" / "python"), present
    own = (sys.version_info[0], sys.version_info[1])
    if OLDEST <= own <= NEWEST and not in_virtual_environment():
        return sys.executable, own
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and version_of(found) == (3, minor):
            return found, (3, minor)
    if OLDEST <= own <= NEWEST:
        return sys.executable, own
    relation = "older" if own < OLDEST else "newer"
    raise SetupRefused(
        f"python3 is {dotted(own)}, {relation} than what Ottla works with ({range_text()}); {how()}"
    )


def version_of(python: str) -> tuple[int, int] | None:
    """Major and minor version of an interpreter; None where it does not start."""
    try:
        answer = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, check=False
        )
    except OSError:
        return None
    numbers = answer.stdout.split()
    return (int(numbers[0]), int(numbers[1])) if answer.returncode == 0 and len(numbers) == 2 else None


def check_venv_module(python: str, version: tuple[int, int]) -> None:
    """Debian and its children ship Python without the part that puts pip into a new environment."""
    probe = subprocess.run([python, "-c", "import venv, ensurepip"], stderr=subprocess.DEVNULL, check=False)
    if probe.returncode != 0:
        raise SetupRefused(
            f"{python} cannot make virtual environments (no ensurepip); "
            f"on Debian and Ubuntu run: apt-get install python{dotted(version)}-venv"
        )


def check_space(is_cluster_alone: bool = False) -> None:
    """Room for the environment and for all that its making writes, before anything is fetched."""
    if not os.access(str(ROOT), os.W_OK):
        raise SetupRefused(f"cannot write to {ROOT}; clone to a directory that is yours")
    temp = Path(tempfile.gettempdir())
    cache = existing_parent(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    roomier = "name a directory on a roomier disk"
    venv_bytes, temp_bytes, cache_bytes = VENV_BYTES, TEMP_BYTES, CACHE_BYTES
    if is_cluster_alone:
        venv_bytes = temp_bytes = cache_bytes = CLUSTER_BYTES
    shares = [
        (ROOT, 0 if STAMP.exists() else venv_bytes, "free some, or clone to a roomier disk"),
        (temp, temp_bytes, f"{roomier}: TMPDIR=/path/to/it make setup"),
        (cache, cache_bytes, f"{roomier}: XDG_CACHE_HOME=/path/to/it make setup"),
    ]
    needed: dict[int, int] = {}
    for directory, share, _ in shares:
        device = os.stat(str(directory)).st_dev
        needed[device] = needed.get(device, 0) + share
    for directory, share, remedy in shares:
        whole = needed[os.stat(str(directory)).st_dev]
        free = shutil.disk_usage(str(directory)).free
        if share and free < whole:
            raise SetupRefused(
                f"the disk of {directory} has {free / 2**30:.1f} GiB free, "
                f"and set-up needs {whole / 2**30:.1f} there; {remedy}"
            )


def existing_parent(directory: Path) -> Path:
    """The directory itself or the nearest one above it that is there."""
    while not directory.exists():
        directory = directory.parent
    return directory


def tell_about_platform() -> None:
    """Say so where nobody has tried it."""
    if sys.platform != "linux":
        print(f"set-up: {platform.system()} is untested; Linux with glibc is what Ottla is tested on")
    elif platform.libc_ver()[0] != "glibc":
        print("set-up: this Linux has another C library than glibc, which is untested")


def has_venv(version: tuple[int, int]) -> bool:
    """Whether ``.venv`` works and has the wanted Python."""
    python = VENV / "bin" / "python"
    return python.exists() and version_of(str(python)) == version


def pip_install(arguments: list[str]) -> None:
    """Run pip inside ``.venv``: on a terminal with its own progress bars, elsewhere with a line a package."""
    command = [
        str(VENV / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        *arguments,
    ]
    if sys.stdout.isatty():
        failed = subprocess.call(command, cwd=str(ROOT)) != 0
    else:
        failed = pip_in_lines(command) != 0
    if failed:
        raise SetupRefused(
            "pip could not do this step (its message is above); if it speaks of connections, check the "
            "network or the proxy; then run make setup again: it goes on where it stopped"
        )


def pip_in_lines(command: list[str]) -> int:
    """Run pip and print a line a package, and one for each tenth of a large download; its exit code."""
    tenths = 0
    with subprocess.Popen(command, cwd=str(ROOT), stdout=subprocess.PIPE, universal_newlines=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            if line.startswith(PIP_NEWS):
                print(line.partition(" (from ")[0].rstrip(), flush=True)
                tenths = 0
            elif line.startswith("Progress "):
                done, total = int(line.split()[1]), int(line.split()[3])
                if total > LARGE_BYTES and done * 10 // total > tenths:
                    tenths = done * 10 // total
                    print(f"set-up: {done // 10**6} of {total // 10**6} MB", flush=True)
    return pip.returncode


def report_java() -> str:
    """Name the Java that ZooKeeper and Spark will run on."""
    code = (
        "from ottla.launch.java import find_java\n"
        "java = find_java()\n"
        "print(f'Java {java.version} from {java.found_in} ({java.executable})')"
    )
    answer = subprocess.run([str(VENV / "bin" / "python"), "-c", code], stdout=subprocess.PIPE, check=False)
    if answer.returncode != 0:
        raise SetupRefused(
            "no usable Java after the set-up; install Java 17 or newer and run make setup again"
        )
    text = answer.stdout.decode().strip()
    print(f"set-up: ZooKeeper and Spark will run on {text}")
    return text


def run(command: list[str], failure: str) -> None:
    """Run a command in the foreground; refuse with the sentence when it fails."""
    if subprocess.run(command, cwd=str(ROOT), check=False).returncode != 0:
        raise SetupRefused(failure)


def step(number: int, text: str) -> None:
    """One line of progress."""
    print(f"set-up [{number}/4]: {text}", flush=True)


def in_virtual_environment() -> bool:
    """Whether this script itself runs inside some virtual environment."""
    return sys.prefix != getattr(sys, "base_prefix", sys.prefix)


def range_text() -> str:
    """The versions that it works with, in words."""
    return f"{dotted(OLDEST)} to {dotted(NEWEST)}"


def dotted(version: tuple[int, int]) -> str:
    """``3.11`` for ``(3, 11)``."""
    return f"{version[0]}.{version[1]}"


def how() -> str:
    """What to do about an unfit Python."""
    return f"install Python {dotted(NEWEST)} and run: make setup PYTHON=python{dotted(NEWEST)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
