"""What an unclean election may have cost: asked of the new leader, because the old one is gone."""

from collections.abc import Callable
from functools import partial

from ottla.broker.decisions.records import Circumstances, LossReceipt, receipt_record
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.runtime.timers import Timers
from ottla.controller.effects import Decision
from ottla.model.errors import ErrorCode
from ottla.model.ids import DEBUG_CONSUMER, TopicPartition
from ottla.model.partition_state import LeaderAndIsr
from ottla.records.record import Record
from ottla.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LANE = "loss-receipts"
VERSION = 4
TRIES_MAX = 30
RETRY_MS = 1_000
OPEN_MAX = 1_000
"""How many receipts may wait for their leader's word; more are written without it."""


class LossReceipts:
    """Finds the offset at which each uncleanly elected leader began, and writes the receipt.

    The end of the epoch before the leader's own is where its log ended when it was elected, however much it
    has taken since. A leader that does not say so in time leaves the offset unknown.
    """

    def __init__(
        self,
        links: PeerLinks,
        timers: Timers,
        high_watermark: Callable[[TopicPartition], int | None],
        take: Callable[[Callable[[], Record]], None],
    ) -> None:
        """``high_watermark`` gives that of this broker's own replica, if it has one."""
        self._links = links
        self._timers = timers
        self._high_watermark = high_watermark
        self._take = take
        self._open = 0

    def begin(self, decision: Decision, circumstances: Circumstances) -> None:
        """An unclean election was written."""
        state = decision.after
        assert state is not None, "an unclean election has a leader"
        if self._open >= OPEN_MAX:
            self._write(decision, state, circumstances, None)
            return
        self._open += 1
        self._ask(decision, state, circumstances, TRIES_MAX)

    def _ask(self, decision: Decision, state: LeaderAndIsr, circumstances: Circumstances, tries: int) -> None:
        if tries == 0:
            self._open -= 1
            self._write(decision, state, circumstances, None)
            return
        topic, index = decision.partition
        row = OffsetForLeaderPartition(
            partition=index,
            current_leader_epoch=state.leader_epoch,
            leader_epoch=state.leader_epoch - 1,
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=DEBUG_CONSUMER, topics=[OffsetForLeaderTopic(topic=topic, partitions=[row])]
        )
        link = self._links.get(state.leader, LANE, negotiates=True)
        link.request(request, VERSION, partial(self._answered, decision, state, circumstances, tries))

    def _answered(
        self,
        decision: Decision,
        state: LeaderAndIsr,
        circumstances: Circumstances,
        tries: int,
        answer: OffsetForLeaderEpochResponse | LinkLost,
    ) -> None:
        found = None if isinstance(answer, LinkLost) else _end_offset(answer)
        if found is None:
            self._timers.after(RETRY_MS, lambda: self._ask(decision, state, circumstances, tries - 1))
            return
        self._open -= 1
        self._write(decision, state, circumstances, found)

    def _write(
        self,
        decision: Decision,
        state: LeaderAndIsr,
        circumstances: Circumstances,
        new_end_offset: int | None,
    ) -> None:
        receipt = LossReceipt(
            decision.partition,
            state.leader_epoch,
            () if decision.before is None else decision.before.isr,
            state.leader,
            new_end_offset,
            self._high_watermark(decision.partition),
        )
        self._take(lambda: receipt_record(receipt, circumstances))


def _end_offset(answer: OffsetForLeaderEpochResponse) -> int | None:
    rows: list[EpochEndOffset] = [row for topic in answer.topics for row in topic.partitions]
    if len(rows) != 1 or rows[0].error_code != ErrorCode.NONE:
        return None
    return max(0, rows[0].end_offset)
