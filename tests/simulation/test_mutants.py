"""The simulation is worth its figures only if it notices bugs: here are the ten it notices soonest."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.hunt import PLANTS, hunt
from simulation.mutants import MUTANTS
from simulation.steering import STEERED

pytestmark = pytest.mark.slow

SEEDS_MAX = 60
"""Each is found within a few; bad luck may take more, and costs time but nothing else."""
QUICKEST = (
    "acknowledged_at_once",
    "deleted_logs_stay",
    "everyone_gets_the_same",
    "min_isr_ignored",
    "moves_end_early",
    "producer_ids_given_twice",
    "retries_are_new",
    "truncate_to_watermark",
    "uncommitted_is_served",
    "watermark_ignores_followers",
)


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", QUICKEST)
def test_a_planted_bug_is_found(name: str) -> None:
    first = secrets.randbelow(2**31)

    kill = hunt(name, first, SEEDS_MAX)

    assert kill.failure is not None, f"{name} was not noticed in {SEEDS_MAX} seeds from {first} on"


def test_every_planted_bug_is_in_the_table_with_who_found_it() -> None:
    told = re.findall(r"^\| `(\w+)` \|", _document("mutants.md"), re.MULTILINE)

    assert sorted(told) == sorted(MUTANTS)


def test_the_documents_count_the_planted_bugs_right() -> None:
    count = len(PLANTS)
    assert f"{count} are planted" in _document("mutants.md")
    assert f"{count} in all" in _document("reliability.md")
    assert f"| planted bugs; found | {count}; {len(MUTANTS)} (" in _document("proof.md")


def _document(name: str) -> str:
    return (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")


def test_every_planted_bug_is_taken_out_again() -> None:
    from ottla.replication.leader import PartitionLeader

    before = dict(PartitionLeader.__dict__)
    for plant in PLANTS.values():
        with plant():
            pass
    assert dict(PartitionLeader.__dict__) == before
    assert len(MUTANTS) >= 30
    assert set(STEERED) <= set(PLANTS)
