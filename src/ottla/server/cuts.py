"""For tests: brokers that this one cannot reach, as if the network between them were cut.

A file lists their addresses, ``host:port``, one a line. It is read at the start and again at SIGUSR2; beside
it stands then what is obeyed, so that whoever cuts knows when it is done. A broker closes the connections
that it opened to these addresses and opens no others: a cut in both directions is told to both.
"""

import logging
from pathlib import Path

log = logging.getLogger(__name__)

OBEYED = ".obeyed"


def read_cuts(file: Path) -> frozenset[str]:
    """What the file says now."""
    return frozenset(file.read_text(encoding="utf-8").split())


def tell_obeyed(file: Path, addresses: frozenset[str]) -> None:
    """Write beside the file what is obeyed now, replaced as a whole."""
    log.warning("cut off, as a test asked for, from addresses=%s", ",".join(sorted(addresses)) or "none")
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text("".join(f"{address}\n" for address in sorted(addresses)), encoding="utf-8")
    fresh.replace(f"{file}{OBEYED}")
