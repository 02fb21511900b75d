"""Planted bugs: each breaks one rule of the product while its block runs. A simulation must notice.

``python -m simulation.mutants NAME …`` (from ``tests/``) tells after how many seeds each is found.
"""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.broker import fences
from ottla.broker.apis import leader_and_isr
from ottla.broker.controller_channel import BrokerChannel
from ottla.broker.controller_host import ControllerHost
from ottla.broker.partitions import Partitions
from ottla.broker.registration import Registration
from ottla.controller import isr_changes, state_changes
from ottla.model.errors import ErrorCode
from ottla.model.ids import Offset
from ottla.replication import fetch_checks
from ottla.replication.effects import HighWatermarkAdvanced, TruncateTo
from ottla.replication.follower import PartitionFollower
from ottla.replication.isr import Isr
from ottla.replication.leader import FollowerProgress, PartitionLeader
from ottla.sim.run import run_seed
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.producer_state import ProducerState


@contextmanager
def _replaced(owner: Any, name: str, mutant: Any) -> Iterator[None]:
    original = owner.__dict__[name]
    setattr(owner, name, mutant)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _truncate_to_watermark() -> Any:
    """A follower cuts its log to its own, lagging high watermark (before KIP-101)."""

    def started(self: PartitionFollower) -> Any:
        if self.log.high_watermark < self.log.end_offset:
            return [TruncateTo(Offset(self.log.high_watermark), "planted")]
        return []

    return _replaced(PartitionFollower, "started", started)


def _never_truncate() -> Any:
    """A follower keeps a tail that its leader does not have."""

    def diverged(self: PartitionFollower, leader: Any, fetch_offset: int) -> Any:
        return []

    return _replaced(PartitionFollower, "_diverged", diverged)


def _watermark_ignores_followers() -> Any:
    """Records are acknowledged as soon as the leader has them."""

    def advance(self: PartitionLeader, now_ms: int, live: Any) -> Any:
        if self.end_offset <= self.high_watermark:
            return ()
        self.high_watermark = self.end_offset
        return [HighWatermarkAdvanced(self.end_offset)]

    return _replaced(PartitionLeader, "_try_to_advance", advance)


def _watermark_ignores_pending_isr() -> Any:
    """The watermark does not wait for a member that is just being taken in (KAFKA-8836)."""

    def propose(self: Isr, change: int, isr: Any) -> None:
        original_propose(self, change, isr)
        self.maximal = frozenset(isr) & frozenset(self.committed)

    original_propose = Isr.propose
    return _replaced(Isr, "propose", propose)


def _min_isr_ignored() -> Any:
    """acks=all is taken with one replica in sync."""
    return _replaced(PartitionLeader, "effective_min_isr", property(lambda self: 1))


def _anyone_joins_the_isr() -> Any:
    """A follower joins the ISR wherever it stands."""

    def expand(self: PartitionLeader, follower: Any, progress: Any, live: Any) -> Any:
        if self.isr.pending is not None or follower in self.isr.maximal or follower not in live:
            return ()
        return [self._begin_change((*self.isr.committed, follower), "planted")]

    return _replaced(PartitionLeader, "_try_to_expand", expand)


def _lag_is_forgiven() -> Any:
    """A leader never drops a dead follower from the ISR."""
    return _replaced(FollowerProgress, "is_caught_up", lambda self, end, now, lag: True)


def _no_fetch_fence() -> Any:
    """A leader answers fetches of any leader epoch (before KIP-320)."""
    return _replaced(fetch_checks, "check_leader_epoch", lambda requested, own: 0)


def _no_leader_epoch_fence() -> Any:
    """A broker obeys LeaderAndIsr of older epochs."""

    def judge(self: Partitions, assigned: Any, partition: Any, own_epoch: int) -> Any:
        return None

    return _replaced(Partitions, "_judge_same_epoch", judge)


def _no_controller_epoch_fence() -> Any:
    """A broker obeys a controller that was replaced."""

    def fence(node: Any, controller_epoch: int, broker_epoch: int, is_kraft: bool) -> ErrorCode:
        return ErrorCode.NONE

    return (
        _replaced(leader_and_isr, "fence", fence)
        if hasattr(leader_and_isr, "fence")
        else _replaced(fences, "fence", fence)
    )


def _unclean_always() -> Any:
    """Any live replica may lead, in sync or not."""
    original = state_changes.elect_for_offline_partition

    def elect(assignment: Any, current: Any, online: Any, *, unclean_allowed: bool = False) -> Any:
        return original(assignment, current, online, unclean_allowed=True)

    return _replaced(state_changes, "elect_for_offline_partition", elect)


def _isr_of_strangers() -> Any:
    """The controller takes ISR changes of older partition epochs."""
    original = isr_changes.judge

    def judge(context: Any, event: Any, change: Any) -> Any:
        verdict = original(context, event, change)
        if verdict in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION):
            return None
        return verdict

    return _replaced(isr_changes, "judge", judge)


def _retries_are_new() -> Any:
    """A repeated batch of an idempotent producer is written again."""

    @contextmanager
    def planted() -> Iterator[None]:
        with (
            _replaced(ProducerState, "find_duplicate", lambda self, header: None),
            _replaced(ProducerState, "refuse_batch", lambda self, header, origin: 0),
        ):
            yield

    return planted()


def _epochs_forgotten() -> Any:
    """A new leader does not note where its epoch starts (KAFKA-7415)."""
    return _replaced(LeaderEpochs, "assign", lambda self, *arguments: False)


def _lost_requests_stay_lost() -> Any:
    """The controller does not repeat what a broker did not hear (KAFKA-1187)."""

    def answered(self: BrokerChannel, response: Any) -> None:
        original(self, response if type(response).__name__ != "LinkLost" else _Nothing())

    original = BrokerChannel._answered
    return _replaced(BrokerChannel, "_answered", answered)


class _Nothing:
    error_code = 0
    topics: tuple[Any, ...] = ()
    partition_errors: tuple[Any, ...] = ()


def _never_registers_again() -> Any:
    """After its session ended a broker lives on without a registration (KAFKA-5473)."""
    return _replaced(Registration, "register_again", lambda self, then: None)


def _never_stands_again() -> Any:
    """Nobody takes the office after the controller is gone."""
    return _replaced(ControllerHost, "_on_controller_node", lambda self, event: None)


MUTANTS: dict[str, Callable[[], Any]] = {
    plant.__name__.lstrip("_"): plant
    for plant in (
        _truncate_to_watermark,
        _never_truncate,
        _watermark_ignores_followers,
        _watermark_ignores_pending_isr,
        _min_isr_ignored,
        _anyone_joins_the_isr,
        _lag_is_forgiven,
        _no_fetch_fence,
        _no_leader_epoch_fence,
        _no_controller_epoch_fence,
        _unclean_always,
        _isr_of_strangers,
        _retries_are_new,
        _epochs_forgotten,
        _lost_requests_stay_lost,
        _never_registers_again,
        _never_stands_again,
    )
}


def seeds_to_kill(name: str, first: int, most: int, seconds: int = 30) -> tuple[int, str] | None:
    """After how many seeds the bug was found, and how; None if it was not."""
    for number in range(most):
        with MUTANTS[name]():
            try:
                failure = run_seed(first + number, seconds).failure
            except Exception as error:  # noqa: BLE001 - a broker that dies of the bug has found it too
                failure = f"{type(error).__name__}: {error}"
        if failure is not None:
            return number + 1, failure
    return None


def main(names: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    first = secrets.randbelow(2**31)
    for name in names or MUTANTS:
        found = seeds_to_kill(name, first, 60)
        sys.stdout.write(f"{name}: {f'seed {found[0]}: {found[1]}' if found else 'NOT FOUND'}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
