"""Every test that is said to catch an old bug of Kafka is there, and every planted fault is planted."""

from __future__ import annotations

import re

import pytest

from architecture.sources import ROOT

TEXT = (ROOT / "docs" / "old-bugs.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
SCENARIO = re.compile(r"`(tests/scenarios/[\w/]+\.txt)`")
ROWS = [line for line in TEXT.splitlines() if line.startswith(("| KAFKA-", "| KIP-"))]


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED.findall(TEXT))))
def test_the_named_test_exists(file: str, test: str) -> None:
    assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip().split(",")[0])
def test_every_bug_has_a_test_or_is_said_to_be_open(row: str) -> None:
    assert NAMED.search(row) or SCENARIO.search(row) or "`docs/reliability.md`" in row


def test_all_known_bugs_are_in_the_tables() -> None:
    assert len(ROWS) == 64
