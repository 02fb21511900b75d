"""ZooKeeper's, Curator's and Kafka's own tests over the keeper: what one Apache server passes must pass.

Their programs are unchanged; the class that opens a server's port starts a keeper instead. What is left out,
and why, is in ``tests/support/java/keeper``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.java.suites import read_suite, run_suite

TESTS_MIN = {"zookeeper": 300, "curator": 300, "kafka": 80}
CLASS_SECONDS_MAX = 900


@pytest.mark.long
@pytest.mark.parametrize("name", TESTS_MIN)
def test_what_others_test_holds_over_the_keeper(name: str, tmp_path: Path) -> None:
    suite = read_suite(name)

    failed, count = run_suite(suite, tmp_path, keeper=True, seconds_max=CLASS_SECONDS_MAX)

    assert suite.unexpected(failed) == set()
    assert count >= TESTS_MIN[name]
