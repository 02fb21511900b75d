"""What an unclean election may have cost: asked of the new leader, because the old one is gone."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.decision_records import Circumstances, LossReceipt, receipt_record
from ottla.broker.peer_links import LinkLost
from ottla.controller.effects import Decision
from ottla.model.errors import ErrorCode
from ottla.model.partition_state import LeaderAndIsr
from ottla.records.record import Record
from ottla.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

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

    def __init__(self, node: "Node", take: Callable[[Callable[[], Record]], None]) -> None:
        self._node = node
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
            replica_id=-2, topics=[OffsetForLeaderTopic(topic=topic, partitions=[row])]
        )
        link = self._node.links.get(state.leader, LANE, negotiates=True)
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
            self._node.timers.after(RETRY_MS, lambda: self._ask(decision, state, circumstances, tries - 1))
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
            self._own_high_watermark(decision),
        )
        self._take(lambda: receipt_record(receipt, circumstances))

    def _own_high_watermark(self, decision: Decision) -> int | None:
        """What this broker's own replica knows to have been committed, if it has one."""
        partition_log = self._node.log_dirs.logs.get(decision.partition)
        return None if partition_log is None else partition_log.high_watermark


def _end_offset(answer: OffsetForLeaderEpochResponse) -> int | None:
    rows: list[EpochEndOffset] = [row for topic in answer.topics for row in topic.partitions]
    if len(rows) != 1 or rows[0].error_code != ErrorCode.NONE:
        return None
    return max(0, rows[0].end_offset)
