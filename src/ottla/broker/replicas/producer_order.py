"""Which batches a leader has sent again, so that a producer's batches come into the log in their order.

A producer sends several batches at once. When the first is refused, or lost with the leader before, the next
one may come to a leader that would take it: Kafka's rules let a producer that a log does not know begin with
any sequence, and the first batch would be out of order for ever. Of a producer that the log knows, "out of
order" has some clients begin anew with all that is on its way, though part of it is written. In both cases
"not the leader" has them send the same batches again, in their order.
"""

import logging
from typing import NamedTuple, Protocol

from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.log_limit import LogLimit
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader
from ottla.records.validate import Refused
from ottla.storage.log.log import Log
from ottla.storage.producers.state import is_before

log = logging.getLogger(__name__)

UNSETTLED_MS = 10_000
"""So long after an election, or after a batch was refused, those before a batch may still be on their way."""

REFUSED_MAX = 10_000
"""Of how many producers' refused batches this broker knows at most; the oldest are forgotten."""

_SENT_AGAIN = frozenset(
    {
        int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        int(ErrorCode.NOT_ENOUGH_REPLICAS),
        int(ErrorCode.KAFKA_STORAGE_ERROR),
    }
)
"""After these a producer sends the same batch again."""

_OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_SEND_AGAIN = Refused(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))


class RefusedBatches(NamedTuple):
    """What was refused of one producer on one partition and is not written yet."""

    epoch: int
    first_sequence: int
    last_sequence: int
    refused_ms: int


class LedPartition(Protocol):
    """What is asked of a partition."""

    elected_ms: int

    @property
    def name(self) -> TopicPartition: ...

    @property
    def log(self) -> Log: ...


class ProducerOrder:
    """One for a broker: a partition may be refused before it is there."""

    __slots__ = ("_clock", "_limit", "_refused")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limit = LogLimit(lambda: clock.monotonic_ms() / 1_000)
        self._refused: dict[tuple[TopicPartition, int], RefusedBatches] = {}

    def comes_too_early(self, partition: LedPartition, header: BatchHeader) -> Refused | None:
        """The first that this leader hears of a producer is none of its first batches. As a rule that is a
        producer whose records are gone, and it is taken as it comes; not while those before may come yet."""
        if (
            header.base_sequence <= 0
            or header.producer_id < 0
            or partition.log.producers.get(header.producer_id) is not None
        ):
            return None
        before = self._refused_before(partition.name, header)
        if not self._is_just_elected(partition) and (
            before is None or not is_before(before.first_sequence, header.base_sequence)
        ):
            return None
        self._tell(partition, header, shall_send_again=True)
        return _SEND_AGAIN

    def refused_by_log(self, partition: LedPartition, header: BatchHeader, refused: Refused) -> Refused:
        """What a producer hears of a batch that its log refused."""
        if refused.error != _OUT_OF_ORDER:
            return refused
        shall_send_again = (
            self._is_just_elected(partition) or self._refused_before(partition.name, header) is not None
        )
        self._tell(partition, header, shall_send_again=shall_send_again)
        return _SEND_AGAIN if shall_send_again else refused

    def note_refused(self, name: TopicPartition, header: BatchHeader, refused: Refused) -> None:
        """A batch was not taken; if its producer will send it again, those behind it must wait for it. One
        that only waits for others does not count: a producer that gave those up would wait for ever."""
        if header.producer_id < 0 or refused.error not in _SENT_AGAIN or refused is _SEND_AGAIN:
            return
        key, first = (name, header.producer_id), header.base_sequence
        before = self._refused_before(name, header)
        self._refused.pop(key, None)  # the newest stand last
        if before is None:
            lowest = highest = first
        else:
            lowest = first if is_before(first, before.first_sequence) else before.first_sequence
            highest = first if is_before(before.last_sequence, first) else before.last_sequence
        self._refused[key] = RefusedBatches(
            header.producer_epoch, lowest, highest, self._clock.monotonic_ms()
        )
        if len(self._refused) > REFUSED_MAX:
            del self._refused[next(iter(self._refused))]

    def note_written(self, name: TopicPartition, header: BatchHeader) -> None:
        """A batch is in the log: nothing waits any more once it is the last that was refused."""
        if not self._refused:
            return
        refused = self._refused.get((name, header.producer_id))
        if refused is not None and not is_before(header.base_sequence, refused.last_sequence):
            del self._refused[name, header.producer_id]

    def _refused_before(self, name: TopicPartition, header: BatchHeader) -> RefusedBatches | None:
        refused = self._refused.get((name, header.producer_id))
        if refused is None or refused.epoch != header.producer_epoch:
            return None
        is_old = self._clock.monotonic_ms() - refused.refused_ms >= UNSETTLED_MS
        return None if is_old else refused

    def _is_just_elected(self, partition: LedPartition) -> bool:
        return self._clock.monotonic_ms() - partition.elected_ms < UNSETTLED_MS

    def _tell(self, partition: LedPartition, header: BatchHeader, *, shall_send_again: bool) -> None:
        """After a lost batch hundreds come out of order: some are told, the others counted."""
        left_out = self._limit.take()
        if left_out is None:
            return
        producer = partition.log.producers.get(header.producer_id)
        log.warning(
            "batch out of order, %s partition=%s producer=%d epoch=%d sequence=%d"
            " last_epoch=%d last_sequence=%d left_out=%d",
            "to be sent again" if shall_send_again else "refused",
            partition.name,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            -1 if producer is None else producer.epoch,
            -1 if producer is None else producer.last_sequence,
            left_out,
        )
