"""Whole clusters from seeds: every promise is kept, and the same seed is the same run."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from ottla.sim.run import Outcome, run_seed

pytestmark = pytest.mark.slow

SHORT = (16, 15)
LONG = (400, 60)
"""How many seeds, and how many virtual seconds of faults each."""

_TRACE = """
import logging
logging.disable(logging.CRITICAL)
from ottla.sim.run import run_seed
print(run_seed({}, 10).trace)
"""


def _play(arguments: tuple[int, int]) -> Outcome:
    import logging

    logging.disable(logging.CRITICAL)
    return run_seed(*arguments)


def test_clusters_keep_their_promises_through_faults(long_form: bool) -> None:
    count, seconds = LONG if long_form else SHORT
    first = secrets.randbelow(2**31)
    with ProcessPoolExecutor(2) as pool:
        outcomes = list(pool.map(_play, [(first + number, seconds) for number in range(count)]))

    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    story = "\n".join(failed[0].story[-60:]) if failed else ""
    seeds = [outcome.seed for outcome in failed]
    assert not failed, f"replay: ottla sim SEED --seconds {seconds} for {seeds}\n{story}\n{failed[0].failure}"
    assert sum(outcome.acknowledged for outcome in outcomes) > 100 * count, "too little was at stake"
    assert sum(outcome.faults.total() for outcome in outcomes) > 3 * count, "too little happened"


def test_a_seed_is_the_same_run_whatever_the_hash_seed() -> None:
    seed = secrets.randbelow(2**31)

    def trace(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _TRACE.format(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    assert trace("1") == trace("2"), f"seed {seed} is not the same twice"
