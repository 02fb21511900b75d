"""What a run has: ``make test`` all but the slowest, ``make full`` those too, ``--long`` everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

ONLY_FULL = pytest.StashKey[Counter[str]]()
"""By reason, how many tests this run leaves to ``make full``."""
_SENT = "only_full"


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run tests marked full (make full)")
    parser.addoption(
        "--long", action="store_true", help="also run tests marked full or long, and long counts"
    )
    parser.addoption("--weigh", action="store_true", help="write how long each file took: durations.txt")


def add_markers(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full(reason): runs in make full and with --long, not in make test")
    config.addinivalue_line("markers", "long: runs with --long alone")


def is_full(config: pytest.Config) -> bool:
    return bool(config.getoption("--full") or config.getoption("--long"))


def put_off(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out of ``items`` what this form does not have, and remember why."""
    absent = {} if config.getoption("--long") else dict.fromkeys(_marked(items, "long"), "")
    if not is_full(config):
        for item in [each for each in _marked(items, "full") if each not in absent]:
            (absent[item],) = next(item.iter_markers("full")).args
    config.stash[ONLY_FULL] = Counter(reason for reason in absent.values() if reason)
    if absent:
        config.hook.pytest_deselected(items=list(absent))
        items[:] = [item for item in items if item not in absent]


def _marked(items: Iterable[pytest.Item], name: str) -> list[pytest.Item]:
    return [item for item in items if item.get_closest_marker(name)]


def send_put_off(config: pytest.Config) -> None:
    """From a worker, which has collected, to the process that writes the summary."""
    if hasattr(config, "workeroutput"):
        config.workeroutput[_SENT] = dict(config.stash.get(ONLY_FULL, Counter()))


def receive_put_off(config: pytest.Config, node: Any) -> None:
    """Every worker has collected the same."""
    config.stash[ONLY_FULL] = Counter(getattr(node, "workeroutput", {}).get(_SENT, {}))


def told_put_off(config: pytest.Config) -> list[str]:
    """Lines for the summary."""
    counts = config.stash.get(ONLY_FULL, Counter()).items()
    return [f"only in make full: {count} test{'s' * (count > 1)}: {why}" for why, count in sorted(counts)]
