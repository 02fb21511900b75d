"""Planted bugs of Ottla's own client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching.assigned import Assigned
from ottla.client.fetching.fetcher import FetchCore
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.membership import Membership
from ottla.client.producing.batches import PartitionQueue
from ottla.client.producing.producer import ProducerCore
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.fetch import FetchResponse
from simulation.planting import replaced


def lost_means_failed() -> Any:
    """A batch whose answer was lost is sent again as if by a new producer."""

    def settle(self: ProducerCore, batch: Any, *arguments: Any, **more: Any) -> None:
        self._lines[batch.partition].is_refused = True
        original(self, batch, *arguments, **more)

    original = ProducerCore._settle
    return replaced(ProducerCore, "_settle", settle)


def late_fetches_count() -> Any:
    """A consumer takes what it asked for before it was moved elsewhere."""

    def take(
        self: FetchCore, source: int, offsets: Mapping[TopicPartition, int], response: FetchResponse
    ) -> None:
        now = {name: state.fetch_offset for name, state in self._assigned.items()}
        original(self, source, now, response)

    original = FetchCore._take_response
    return replaced(FetchCore, "_take_response", take)


def errors_skip_ahead() -> Any:
    """A consumer whose fetch failed goes on behind what others have committed meanwhile."""

    def failed(self: FetchCore, state: Assigned, *arguments: Any) -> None:
        original(self, state, *arguments)
        if state.high_watermark > state.fetch_offset >= 0 and not state.has_bytes:
            state.move_to(state.high_watermark)

    original = FetchCore._failed
    return replaced(FetchCore, "_failed", failed)


def shares_begin_at_the_first_record() -> Any:
    """A member that is given partitions does not ask what was committed."""

    def stable(self: GroupConsumerCore, partitions: Any) -> Any:
        yield from original(self, partitions)
        return {}

    original = GroupConsumerCore._stable_offsets
    return replaced(GroupConsumerCore, "_stable_offsets", stable)


def lost_shares_are_kept() -> Any:
    """A member that the group has put out reads on, and says that all of it is its own."""

    def lose(self: Membership) -> Any:
        return
        yield

    return replaced(Membership, "_lose", lose)


def numbered_anew_in_doubt() -> Any:
    """After a batch was given up, those behind it are numbered anew, though they may be in the log."""

    def begin_anew(self: PartitionQueue) -> bool:
        self.is_refused |= self.has_gap
        return original(self)

    original = PartitionQueue.begin_anew
    return replaced(PartitionQueue, "begin_anew", begin_anew)


def positions_asked_for_once() -> Any:
    """A consumer that could not find out where a partition begins does not ask that broker again."""

    def find(self: FetchCore, leader: int, states: Any) -> Any:
        yield from original(self, leader, states)
        if any(state.wanted_timestamp is not None for state in states):
            self._asked_for_offsets.add(leader)

    original = FetchCore._find
    return replaced(FetchCore, "_find", find)


def reset_before_it_is_read() -> Any:
    """A consumer whose next fetch is out of range throws away what it has fetched before."""

    def failed(self: FetchCore, state: Assigned, error: ClientError, source: int) -> None:
        is_out = isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE
        if is_out and state.has_bytes and state.preferred_replica != source:
            self._out_of_range(state)
        else:
            original(self, state, error, source)

    original = FetchCore._failed
    return replaced(FetchCore, "_failed", failed)
