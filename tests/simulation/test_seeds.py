"""Whole clusters from seeds: every promise is kept, and the same seed is the same run."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from ottla.cli.simulation.report import Sums, outcomes_of
from ottla.sim.faults.nemesis import KINDS

pytestmark = pytest.mark.slow

FIRST = 1_000
"""The same seeds for everybody, so that a commit that passed once passes again; the long form and `make sim`
draw new ones, and what they find is mended before it can fail a build that has nothing to do with it."""
SHORT = 12
FULL = 100
LONG = 2_000
SECONDS = 60
JOBS = 2
FAULTS_A_SEED = 10

_TRACES = """
import logging
logging.disable(logging.CRITICAL)
from ottla.sim.run import run_seed
for seed in range({first}, {first} + 2):
    outcome = run_seed(seed, 30)
    print(seed, outcome.trace, outcome.events, outcome.acknowledged)
"""


def test_clusters_keep_their_promises_through_faults(full_form: bool, long_form: bool) -> None:
    count = LONG if long_form else FULL if full_form else SHORT
    first = secrets.randbelow(2**31) if long_form else FIRST
    sums = Sums()

    outcomes = list(outcomes_of([(first + number, SECONDS) for number in range(count)], JOBS))

    for outcome in outcomes:
        sums.add(outcome)
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    story = "\n".join(failed[0].story[-60:]) if failed else ""
    replays = [f"ottla sim {outcome.seed}: {outcome.failure}" for outcome in failed]
    assert not failed, f"{story}\n" + "\n".join(replays)
    assert min(outcome.faults.total() for outcome in outcomes) >= FAULTS_A_SEED, "too little happened"
    assert min(outcome.virtual_seconds for outcome in outcomes) >= SECONDS
    assert sums.counts["acknowledged"] > 200 * count, "too little was at stake"
    assert sums.counts["commits"] > 10 * count, "groups did not work"
    assert len(sums.calls) >= 30, f"only {sorted(sums.calls)} were asked for"
    if full_form:  # fewer seeds may well do without one
        assert set(sums.faults) >= set(KINDS) - {"cut ring", "elect unclean"}, "a kind of fault never struck"


def test_a_seed_is_the_same_run_whatever_the_hash_seed() -> None:
    first = secrets.randbelow(2**31)

    def traces(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _TRACES.format(first=first)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        ).stdout

    assert traces("1") == traces("2"), f"seeds from {first} on are not the same twice"
