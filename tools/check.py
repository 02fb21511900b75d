"""``make check``: all quick judges, two at a time, one line each, and in full only what failed.

``--no-tests`` leaves the tests out, for whoever runs all of them next.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
AT_ONCE = 2

UNIT_DIRECTORIES = ("tests/unit", "tests/scenarios")


@dataclass(frozen=True, slots=True)
class Judge:
    """One command that must end with exit code 0."""

    name: str
    command: Sequence[str | Path]
    runs_tests: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said."""

    judge: Judge
    passed: bool
    elapsed_s: float
    output: str


def judges() -> list[Judge]:
    """The longest first, so that two at a time end soonest."""
    units = [directory for directory in UNIT_DIRECTORIES if (ROOT / directory).is_dir()]
    return [
        Judge("unit tests", [sys.executable, "-m", "pytest", *units], runs_tests=True),
        Judge("types", [BIN / "mypy"]),
        Judge("architecture", [sys.executable, "-m", "pytest", "tests/architecture"], runs_tests=True),
        Judge("layers", [BIN / "lint-imports"]),
        Judge("lint", [BIN / "ruff", "check", "."]),
        Judge("format", [BIN / "ruff", "format", "--check", "."]),
    ]


def judge(one: Judge) -> Verdict:
    """Run one judge to its end."""
    started = time.monotonic()
    done = subprocess.run(
        one.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Verdict(one, done.returncode == 0, time.monotonic() - started, done.stdout)


def main() -> int:
    """Run all; exit code 1 when one of them failed."""
    started = time.monotonic()
    with_tests = "--no-tests" not in sys.argv[1:]
    asked = [one for one in judges() if with_tests or not one.runs_tests]
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(judge, asked):
            word = "ok" if verdict.passed else "FAILED"
            print(f"{verdict.judge.name:13} {word:7} {verdict.elapsed_s:5.1f} s", flush=True)
            if not verdict.passed:
                failed.append(verdict)
    for verdict in failed:
        command = " ".join(str(part) for part in verdict.judge.command)
        print(f"\n--- {verdict.judge.name}: {command}\n{verdict.output.rstrip()}")
    total_s = time.monotonic() - started
    print(f"\nmake check: {f'{len(failed)} failed' if failed else 'all passed'} in {total_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
