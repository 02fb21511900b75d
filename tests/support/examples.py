"""How many examples a property gets: few in the short form, many with ``--long``."""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, settings


def examples(few: int, many: int) -> settings:
    """For properties whose every example asks another process: no deadline, no complaint about slowness."""
    count = many if "--long" in sys.argv else few
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
