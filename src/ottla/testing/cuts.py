"""The network between two brokers of a cluster under test, cut and whole again. Needs no root."""

import signal
import time

from ottla.launch.cluster import BrokerProcess
from ottla.server.cuts import OBEYED

OBEY_S_MAX = 10.0
_LOOK_AGAIN_S = 0.002


class NotObeyed(Exception):
    """A broker did not take note of a cut; the text says which, and where to look."""


def cut(one: BrokerProcess, other: BrokerProcess) -> None:
    """Neither reaches the other; both still reach everybody else, and everybody else them."""
    _change(one, _of(one) | {other.address})
    _change(other, _of(other) | {one.address})


def heal(one: BrokerProcess, other: BrokerProcess) -> None:
    """They reach one another again."""
    _change(one, _of(one) - {other.address})
    _change(other, _of(other) - {one.address})


def heal_all(broker: BrokerProcess) -> None:
    """It reaches everybody again."""
    _change(broker, frozenset())


def _of(broker: BrokerProcess) -> frozenset[str]:
    return frozenset(broker.cuts.read_text(encoding="utf-8").split()) if broker.cuts.exists() else frozenset()


def _change(broker: BrokerProcess, addresses: frozenset[str]) -> None:
    """Write it down and wait until the broker obeys; one that is down or frozen does when it goes on."""
    if addresses == _of(broker):
        return
    text = "".join(f"{address}\n" for address in sorted(addresses))
    broker.cuts.write_text(text, encoding="utf-8")
    obeyed = broker.cuts.with_name(broker.cuts.name + OBEYED)
    give_up = time.monotonic() + OBEY_S_MAX
    if broker.is_running:
        broker.send(signal.SIGUSR2)
    while broker.is_running and not broker.is_frozen:
        if obeyed.exists() and obeyed.read_text(encoding="utf-8") == text:
            return
        if time.monotonic() > give_up:
            raise NotObeyed(f"broker {broker.broker_id} did not obey {broker.cuts}; its log is {broker.log}")
        time.sleep(_LOOK_AGAIN_S)
