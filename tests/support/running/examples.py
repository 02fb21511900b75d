"""How many examples a property gets: few and always the same ones, or many new ones with ``--long``."""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, settings


def examples(few: int, many: int) -> settings:
    """For properties whose every example asks another process: no deadline, no complaint about slowness."""
    is_long = "--long" in sys.argv
    return settings(
        max_examples=many if is_long else few,
        derandomize=not is_long,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
