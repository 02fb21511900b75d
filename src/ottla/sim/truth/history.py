"""What clients saw, and what must hold of it: the truth the cluster is judged by."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.model.ids import TopicPartition
from ottla.sim.plan import TopicKind


class Violation(AssertionError):
    """The cluster broke a promise."""


@dataclass(slots=True)
class Sent:
    """One value a producer sent: to where, and what it heard of it."""

    value: bytes
    producer: str
    order: int
    partition: TopicPartition
    key: bytes | None = None
    offset: int | None = None
    is_acknowledged: bool = False
    is_refused: bool = False
    """Refused before it was written: it must never appear."""


@dataclass(frozen=True, slots=True)
class Found:
    """A record that stands in a log when everything has come to rest."""

    offset: int
    key: bytes | None
    value: bytes


@dataclass(slots=True)
class FinalLog:
    """One partition's records at the end, and from where on there must be some."""

    kind: TopicKind
    start: int
    records: list[Found]
    loss_from: int | None = None
    """Acknowledged offsets from here on may be gone: an unclean election said so. None: none may."""


@dataclass(slots=True)
class History:
    """The record of a run; checks raise ``Violation`` as soon as something cannot be."""

    sent: dict[bytes, Sent] = field(default_factory=dict)
    seen: dict[tuple[TopicPartition, int], bytes] = field(default_factory=dict)
    """What stood at an offset, by the word of an acknowledgement or of a reader: it may never change."""
    acknowledged: int = 0
    read: int = 0
    unclean: set[TopicPartition] = field(default_factory=set)
    """Partitions that may have lost records: an unclean election, or a last replica without its data."""
    on_acked: Callable[[Sent], None] | None = None
    _producer_ids: dict[int, str] = field(default_factory=dict)

    def will_send(self, sent: Sent) -> None:
        self.sent[sent.value] = sent

    def producer_id_given(self, producer_id: int, producer: str) -> None:
        """No two producers ever get the same id."""
        other = self._producer_ids.setdefault(producer_id, producer)
        if other != producer:
            raise Violation(f"producer id {producer_id} was given to {other} and to {producer}")

    def acked(self, sent: Sent, offset: int | None) -> None:
        """A produce with acks=all succeeded: the value stands at that offset for ever."""
        sent.is_acknowledged = True
        sent.offset = offset
        self.acknowledged += 1
        if offset is not None:
            self._must_agree(sent.partition, offset, sent.value, "acknowledged")
        if self.on_acked is not None:
            self.on_acked(sent)

    def refused(self, sent: Sent) -> None:
        """The leader said that it did not write this."""
        sent.is_refused = True

    def was_read(self, partition: TopicPartition, offset: int, value: bytes, reader: str) -> None:
        """A consumer was given a record."""
        self.read += 1
        known = self.sent.get(value)
        if known is None or known.partition != partition:
            raise Violation(
                f"phantom: {reader} read {value!r} at {partition}@{offset}, which nobody sent there"
            )
        if known.is_refused:
            raise Violation(f"refused and yet there: {value!r} at {partition}@{offset}")
        self._must_agree(partition, offset, value, f"read by {reader}")

    def _must_agree(self, partition: TopicPartition, offset: int, value: bytes, how: str) -> None:
        before = self.seen.setdefault((partition, offset), value)
        if before != value and partition not in self.unclean:
            raise Violation(f"changed: {partition}@{offset} was {before!r} and is {value!r} ({how})")

    # -- the end -----------------------------------------------------------------------------

    def check_final(self, logs: dict[TopicPartition, FinalLog]) -> None:
        """After everything healed: the logs hold every acknowledged value once, in order."""
        acknowledged: dict[TopicPartition, list[Sent]] = {partition: [] for partition in logs}
        for sent in self.sent.values():
            if sent.is_acknowledged and sent.partition in logs:
                acknowledged[sent.partition].append(sent)
        for partition, log in logs.items():
            self._check_order(partition, log.records, is_whole=partition not in self.unclean)
            self._check_kept(acknowledged[partition], log)

    def _check_kept(self, acknowledged: list[Sent], log: FinalLog) -> None:
        where = {found.value: found.offset for found in log.records}
        newest = {found.key: found.offset for found in log.records}
        for sent in acknowledged:
            offset = sent.offset
            if offset is not None and (
                offset < log.start or (log.loss_from is not None and offset >= log.loss_from)
            ):
                continue
            if sent.value not in where:
                if self._was_superseded(sent, log, newest):
                    continue
                raise Violation(f"lost: {sent.value!r} was acknowledged at {sent.partition}@{offset}")
            if offset is not None and where[sent.value] != offset:
                raise Violation(f"moved: {sent.value!r} acknowledged at {offset}, is at {where[sent.value]}")

    @staticmethod
    def _was_superseded(sent: Sent, log: FinalLog, newest: dict[bytes | None, int]) -> bool:
        if sent.offset is None:
            return log.start > 0 or log.loss_from is not None or log.kind is TopicKind.COMPACTED
        return log.kind is TopicKind.COMPACTED and newest.get(sent.key, -1) > sent.offset

    def _check_order(self, partition: TopicPartition, log: Iterable[Found], *, is_whole: bool) -> None:
        last_order: dict[str, int] = {}
        last_offset = -1
        values: set[bytes] = set()
        for found in log:
            offset, value = found.offset, found.value
            if offset <= last_offset:
                raise Violation(f"offsets go back: {partition}@{offset} behind {last_offset}")
            last_offset = offset
            sent = self.sent.get(value)
            if sent is None or sent.partition != partition:
                raise Violation(f"phantom: {value!r} at {partition}@{offset}")
            if sent.is_refused:
                raise Violation(f"refused and yet there: {value!r} at {partition}@{offset}")
            if not is_whole:
                continue
            if value in values:
                raise Violation(f"duplicate: {value!r} twice in {partition}")
            values.add(value)
            if sent.order <= last_order.get(sent.producer, -1):
                raise Violation(f"reordered: {value!r} of {sent.producer} at {partition}@{offset}")
            last_order[sent.producer] = sent.order
