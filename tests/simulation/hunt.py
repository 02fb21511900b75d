"""The hunt for planted bugs: after how many seeds each is found, and by which check.

``python -m simulation.hunt [--most N] [NAME …]`` from ``tests/``; one line of JSON a bug. With
``--scenarios`` the text scenarios are the hunters instead of seeds, with ``--units`` the unit tests.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import secrets
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ottla.sim.faults.nemesis import KINDS
from ottla.sim.run import run_plan
from simulation.mutants import CANDIDATES, MUTANTS
from simulation.steering import STEERED, Steer

PLANTS = {**MUTANTS, **CANDIDATES}
SCENARIOS = ("scenarios",)
UNITS = (
    "unit/broker",
    "unit/client",
    "unit/controller",
    "unit/coordinator",
    "unit/replication",
    "unit/storage",
)


@dataclass
class Kill:
    """How a planted bug was found."""

    name: str
    seeds: int
    seed: int
    failure: str | None
    elapsed_s: float


def hunt(name: str, first: int, most: int) -> Kill:
    """Play seeds until one notices; ``failure`` is None if none did."""
    steer = STEERED.get(name, Steer())
    started = time.monotonic()
    for number in range(most):
        plan = steer.plan(first + number, KINDS)
        with PLANTS[name]():
            failure = run_plan(plan).failure
        if failure is not None:
            return Kill(name, number + 1, plan.seed, failure, time.monotonic() - started)
    return Kill(name, most, -1, None, time.monotonic() - started)


def hunt_in_tests(name: str, folders: tuple[str, ...]) -> Kill:
    """Run these tests with the bug planted; the first that fails has found it."""
    tests = Path(__file__).parents[1]
    started = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "simulation.plant", "-p", "no:randomly", *folders],
        cwd=tests,
        env={**os.environ, "OTTLA_PLANT": name, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    failure = found.group(1) if found else None
    return Kill(name, 0, -1, failure, time.monotonic() - started)


def main() -> None:
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--first", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--scenarios", dest="folders", action="store_const", const=SCENARIOS)
    parser.add_argument("--units", dest="folders", action="store_const", const=UNITS)
    options = parser.parse_args()
    for name in options.names or MUTANTS:
        if options.folders is not None:
            kill = hunt_in_tests(name, options.folders)
        else:
            kill = hunt(name, options.first, options.most)
        sys.stdout.write(json.dumps(asdict(kill)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
