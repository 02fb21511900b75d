"""The in-sync replicas: what the controller has written, and the one change it was asked for.

While a change is under way the leader does not know which of the two ISRs the controller's next
election will use, so the high watermark waits for the members of both (the *maximal* ISR), and
the min-ISR rules count only the committed ISR.
"""

from dataclasses import dataclass
from enum import Enum, auto

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.replication.events import IsrChangeAnswered


class IsrAnswer(Enum):
    """What an answer to a proposed ISR asks of the leader."""

    COMMIT = auto()
    IGNORE = auto()
    ROLL_BACK = auto()
    WAIT_FOR_CONTROLLER = auto()
    RESUBMIT = auto()


_ROLL_BACK = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
_WAIT_FOR_CONTROLLER = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


@dataclass(frozen=True, slots=True)
class PendingIsr:
    """The one change in flight, by the number that its answer quotes."""

    change: int
    isr: tuple[BrokerId, ...]


class Isr:
    """The committed ISR and the pending one, if any."""

    __slots__ = ("committed", "maximal", "pending")

    def __init__(self, committed: tuple[BrokerId, ...]) -> None:
        self.committed = committed
        self.pending: PendingIsr | None = None
        self.maximal = frozenset(committed)

    def propose(self, change: int, isr: tuple[BrokerId, ...]) -> None:
        """Begin a change; there is never a second one beside it."""
        assert self.pending is None, "one ISR change at a time"
        self.pending = PendingIsr(change, isr)
        self.maximal = frozenset(self.committed) | frozenset(isr)

    def commit(self, isr: tuple[BrokerId, ...]) -> None:
        """The controller wrote this ISR. Replaced in one step, never emptied in between."""
        self.committed = isr
        self.pending = None
        self.maximal = frozenset(isr)

    def roll_back(self) -> None:
        """The controller refused for good: what was committed still holds."""
        self.commit(self.committed)


def judge_answer(
    answer: IsrChangeAnswered, pending: PendingIsr | None, leader_epoch: LeaderEpoch, partition_epoch: int
) -> IsrAnswer:
    """What an AlterPartition result means for the leader that proposed it.

    Late answers, to a change that a LeaderAndIsr request has since replaced, mean nothing. After
    an error that only a newer decision of the controller can explain, the leader stays pending
    until it hears that decision; whatever is left may just be tried again.
    """
    if pending is None or pending.change != answer.change or answer.proposed_in != leader_epoch:
        return IsrAnswer.IGNORE
    if answer.error is ErrorCode.NONE:
        is_current = answer.leader_epoch == leader_epoch and answer.partition_epoch >= partition_epoch
        return IsrAnswer.COMMIT if is_current else IsrAnswer.IGNORE
    if answer.error in _ROLL_BACK:
        return IsrAnswer.ROLL_BACK
    if answer.error in _WAIT_FOR_CONTROLLER:
        return IsrAnswer.WAIT_FOR_CONTROLLER
    return IsrAnswer.RESUBMIT
