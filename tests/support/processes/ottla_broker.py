"""An Ottla broker as a real process, with the same handles as an Apache one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes.broker_process import BrokerProcess, wait_all_usable


class OttlaBroker(BrokerProcess):
    """One Ottla broker. Started again, it waits for the end of its own last session by itself."""

    kind = "ottla"

    def command(self, settings: Path) -> list[str]:
        return [sys.executable, "-W", "error", "-m", "ottla.server", str(settings)]


@contextmanager
def ottla_brokers(*brokers: OttlaBroker) -> Iterator[None]:
    """The brokers run for the length of a ``with``, all usable at its start."""
    try:
        for broker in brokers:
            broker.launch()
        wait_all_usable(brokers)
        yield
    finally:
        for broker in brokers:
            broker.stop()
