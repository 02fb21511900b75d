"""What clients saw, and what must hold of it: the truth the cluster is judged by."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.model.ids import TopicPartition


class Violation(AssertionError):
    """The cluster broke a promise."""


@dataclass(slots=True)
class Sent:
    """One value a producer sent: to where, and what it heard of it."""

    value: bytes
    producer: str
    order: int
    partition: TopicPartition
    offset: int | None = None
    is_acknowledged: bool = False
    is_refused: bool = False
    """Refused before it was written: it must never appear."""


@dataclass(slots=True)
class History:
    """The record of a run; checks raise ``Violation`` as soon as something cannot be."""

    sent: dict[bytes, Sent] = field(default_factory=dict)
    seen: dict[tuple[TopicPartition, int], bytes] = field(default_factory=dict)
    """What stood at an offset, by the word of an acknowledgement or of a reader: it may never change."""
    acknowledged: int = 0
    read: int = 0
    unclean: set[TopicPartition] = field(default_factory=set)
    """Partitions that an announced unclean election has touched: loss is allowed there."""

    def will_send(self, sent: Sent) -> None:
        self.sent[sent.value] = sent

    def acked(self, sent: Sent, offset: int) -> None:
        """A produce with acks=all succeeded: the value stands at that offset for ever."""
        sent.is_acknowledged = True
        sent.offset = offset
        self.acknowledged += 1
        self._must_agree(sent.partition, offset, sent.value, "acknowledged")

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

    def check_final(self, logs: dict[TopicPartition, list[tuple[int, bytes]]]) -> None:
        """After everything healed: the logs hold every acknowledged value once, in order."""
        for partition, log in logs.items():
            self._check_order(partition, log)
        where = {value: (partition, offset) for partition, log in logs.items() for offset, value in log}
        for sent in self.sent.values():
            if not sent.is_acknowledged or sent.partition in self.unclean or sent.partition not in logs:
                continue
            if sent.value not in where:
                raise Violation(f"lost: {sent.value!r} was acknowledged at {sent.partition}@{sent.offset}")
            if where[sent.value] != (sent.partition, sent.offset):
                raise Violation(
                    f"moved: {sent.value!r} acknowledged at {sent.offset}, is at {where[sent.value]}"
                )

    def _check_order(self, partition: TopicPartition, log: Iterable[tuple[int, bytes]]) -> None:
        last_order: dict[str, int] = {}
        last_offset = -1
        values: set[bytes] = set()
        for offset, value in log:
            if offset <= last_offset:
                raise Violation(f"offsets go back: {partition}@{offset} behind {last_offset}")
            last_offset = offset
            if value in values:
                raise Violation(f"duplicate: {value!r} twice in {partition}")
            values.add(value)
            sent = self.sent.get(value)
            if sent is None:
                raise Violation(f"phantom: {value!r} at {partition}@{offset}")
            if sent.is_refused:
                raise Violation(f"refused and yet there: {value!r} at {partition}@{offset}")
            if sent.order <= last_order.get(sent.producer, -1):
                raise Violation(f"reordered: {value!r} of {sent.producer} at {partition}@{offset}")
            last_order[sent.producer] = sent.order
