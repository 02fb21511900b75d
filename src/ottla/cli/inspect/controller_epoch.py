"""The controller's epoch: clients are not told it, ZooKeeper knows it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ottla.cli.local.state import DEFAULT_DATA_DIR, read_state
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.zookeeper import zookeeper_session
from ottla.znodes.codec import decode_controller_epoch
from ottla.znodes.paths import CONTROLLER_EPOCH

LOOK_S = 0.5
FIRST_LOOK_S = 1.0
"""How long the first picture may wait for it."""


@dataclass(slots=True)
class SeenEpoch:
    """The epoch that ZooKeeper last told; ``None`` before, and while it does not answer."""

    value: int | None = None
    is_asked: threading.Event = field(default_factory=threading.Event)


def zookeeper_known(named: str | None, bootstrap_server: str) -> str | None:
    """The ZooKeeper that was named, or that of the cluster of this directory if that is the one asked."""
    if named is None and not bootstrap_server and (here := read_state(DEFAULT_DATA_DIR)) is not None:
        return here.zookeeper
    return named


def read_epoch(connect: str) -> int:
    """The epoch now; no answer is a refusal."""
    with zookeeper_session(connect) as session:
        return decode_controller_epoch(session.get(CONTROLLER_EPOCH).data)


@contextmanager
def watched_epoch(connect: str | None) -> Iterator[SeenEpoch]:
    """The epoch, kept fresh by a thread, so that a frozen ZooKeeper does not freeze the caller."""
    seen = SeenEpoch()
    is_over = threading.Event()
    if connect is not None:
        threading.Thread(target=_watch, args=(connect, seen, is_over), name="epoch", daemon=True).start()
        seen.is_asked.wait(FIRST_LOOK_S)
    try:
        yield seen
    finally:
        is_over.set()


def _watch(connect: str, seen: SeenEpoch, is_over: threading.Event) -> None:
    while not is_over.is_set():
        try:
            with zookeeper_session(connect) as session:
                while not is_over.is_set():
                    seen.value = decode_controller_epoch(session.get(CONTROLLER_EPOCH).data)
                    seen.is_asked.set()
                    is_over.wait(LOOK_S)
        except CommandRefused:
            seen.value = None
            seen.is_asked.set()
            is_over.wait(LOOK_S)
