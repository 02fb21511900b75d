"""What must hold of transactions: all or nothing, no dirty read, nothing lost that was committed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ottla.model.ids import TopicPartition
from ottla.sim.truth.contents import Settled
from ottla.sim.truth.history import History, Sent, Violation


class Phase(Enum):
    """How far a program has come with a transaction, by its own knowledge."""

    OPEN = "open"
    COMMITTING = "asked to commit"
    """It may be committed or not, for all that its program knows."""
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Attempt:
    """One transaction of one process, and what it wrote."""

    program: str
    phase: Phase = Phase.OPEN
    sent: list[Sent] = field(default_factory=list)


class TransactionTruth:
    """Judges transactions by what programs were told, what readers were given, and the logs in the end."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.is_void = False
        """The log of a coordinator may have lost records: nothing is asked any more."""
        self.commits = 0
        self.aborts = 0
        self._attempts: list[Attempt] = []
        self._of: dict[bytes, Attempt] = {}
        self._given: dict[tuple[int, int], str] = {}
        self._ids: dict[int, str] = {}

    # -- while it goes on --------------------------------------------------------------------

    def began(self, program: str) -> Attempt:
        attempt = Attempt(program)
        self._attempts.append(attempt)
        return attempt

    def will_write(self, attempt: Attempt, sent: Sent) -> None:
        self.history.will_send(sent)
        self._of[sent.value] = attempt
        attempt.sent.append(sent)

    def committed(self, attempt: Attempt) -> None:
        attempt.phase = Phase.COMMITTED
        self.commits += 1

    def epoch_given(self, producer: tuple[int, int], transactional_id: str, program: str) -> None:
        """No two processes ever get the same epoch of a producer id, no two transactional ids the same id."""
        if self.is_void:
            return
        other = self._given.setdefault(producer, program)
        if other != program:
            raise Violation(
                f"epoch {producer[1]} of producer {producer[0]} was given to {other} and {program}"
            )
        known = self._ids.setdefault(producer[0], transactional_id)
        if known != transactional_id:
            raise Violation(f"producer {producer[0]} was given to {known} and to {transactional_id}")

    def was_read(self, partition: TopicPartition, offset: int, value: bytes, reader: str) -> None:
        """A reader of committed records was given one."""
        self.history.was_read(partition, offset, value, reader)
        attempt = self._of.get(value)
        if attempt is None or self.is_void or not self._is_clean(attempt):
            return
        if attempt.phase in (Phase.OPEN, Phase.ABORTED):
            raise Violation(
                f"dirty read: {reader} was given {value!r} at {partition}@{offset}, whose transaction is"
                f" {attempt.phase.value}"
            )

    def _is_clean(self, attempt: Attempt) -> bool:
        return all(sent.partition not in self.history.unclean for sent in attempt.sent)

    # -- the end -----------------------------------------------------------------------------

    def check(self, logs: Mapping[TopicPartition, Iterable[Settled]]) -> None:
        """All of a transaction is committed or none, over all partitions, as its program was told."""
        if self.is_void:
            return
        committed: set[bytes] = set()
        for partition, log in logs.items():
            for each in log:
                if each.is_committed:
                    committed.add(each.value)
                if each.is_committed is None and partition not in self.history.unclean:
                    raise Violation(f"hanging: {each.value!r} at {partition}@{each.offset} has no marker")
        for attempt in self._attempts:
            if self._is_clean(attempt):
                self._check(attempt, committed)

    @staticmethod
    def _check(attempt: Attempt, committed: Collection[bytes]) -> None:
        missing = [sent for sent in attempt.sent if sent.value not in committed]
        if attempt.phase is Phase.COMMITTED and missing:
            raise Violation(f"lost commit: {missing[0].value!r} of {attempt.program} is not committed")
        if not missing or len(missing) == len(attempt.sent):
            if attempt.phase in (Phase.OPEN, Phase.ABORTED) and len(missing) < len(attempt.sent):
                raise Violation(
                    f"unasked: {attempt.sent[0].value!r} is committed, its transaction was"
                    f" {attempt.phase.value}"
                )
            return
        there = next(sent for sent in attempt.sent if sent.value in committed)
        raise Violation(f"torn: of one transaction {there.value!r} is committed, {missing[0].value!r} is not")


def copied(value: bytes) -> bytes:
    """What a copy was made of."""
    return value.partition(b"|")[2]


def check_copies(source: Iterable[Settled], target: Iterable[Settled], where: TopicPartition) -> None:
    """Every committed record was copied exactly once, in order."""
    wanted = [each.value for each in source if each.is_committed]
    found = [copied(each.value) for each in target if each.is_committed]
    if found == wanted:
        return
    at = next((n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), None)
    if at is not None:
        raise Violation(f"copied wrongly: copy {at} in {where} is of {found[at]!r} and not of {wanted[at]!r}")
    raise Violation(f"copied wrongly: {len(found)} copies in {where} of {len(wanted)} records")
