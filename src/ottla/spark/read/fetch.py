"""One task's fetches: from the partition's leader, whoever that is by then, or from the replica that it names
for our rack; the next is always on its way.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ottla.client.blocking.client import Client
from ottla.client.config import ConsumerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, Task, sleep
from ottla.client.errors import BrokerError, ClientError, CorruptBatch
from ottla.client.fetching.decoding import Chunk
from ottla.client.fetching.fetch_partition import fetch_partition
from ottla.client.fetching.offsets import list_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.kernels.decode import NO_BATCH, TABLE_WIDTH, find_plain_batches
from ottla.spark.read.ranges import OffsetRange
from ottla.wire.apis.fetch import PartitionData
from ottla.wire.primitives import ZERO_UUID, Buffer

log = logging.getLogger(__name__)

ROW_BYTES_GUESS = 1024
FETCH_BYTES_MIN = 128 * 1024
"""A short range, as of a small trigger, does not need megabytes of what comes behind it."""

KEPT_BYTES_MIN = 128 * 1024
"""Less is copied: it is not worth a new buffer for what comes next."""

CORRUPT_ATTEMPTS = 3
"""A batch that is corrupt on the wire is fetched again; one that is corrupt on the disk stays so."""

EMPTY_ATTEMPTS = 5
"""So often the log may end before a record that was there: a new leader learns how far all is committed."""

REMADE_ATTEMPTS = 5
"""So often a topic is said to be another: one who says it may not have heard of the topic that is meant."""

NO_REPLICA = -1

Fetched = tuple[Chunk, int]
"""What came, and the offset behind it."""

_NO_TABLE = np.empty((0, TABLE_WIDTH), np.int64)
_REMEDY = "see that the partition has a leader and its topic still exists"


class TopicRemade(ClientError):
    """The topic was deleted, and another has its name."""


class Source:
    """Whom a range is fetched from: the leader, or a nearer replica while it serves us well (KIP-392)."""

    def __init__(self, rack: str) -> None:
        self.rack = rack
        """Told to the leader, which may name a replica there."""
        self.replica: int | None = None
        """The replica that is asked instead of the leader."""

    @property
    def is_leader(self) -> bool:
        return self.replica is None

    def is_told_of(self, replica: int, engine: Engine) -> bool:
        """The leader has answered; whether it was with a replica to ask instead."""
        if replica == NO_REPLICA:
            return False
        if replica in engine.metadata.brokers:
            self.replica = replica
        else:
            self.stay_with_leader()
        return True

    def stay_with_leader(self) -> None:
        """The replica does not serve us: to the end of the range we ask nobody but the leader."""
        self.rack, self.replica = "", None


class RangeFetcher:
    """Fetches the batches of one range."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        wanted: OffsetRange,
        *,
        poll_timeout_ms: int,
        fail_on_data_loss: bool,
    ) -> None:
        self._client = client
        self._config = config
        self._range = wanted
        self._poll_timeout_ms = poll_timeout_ms
        self._fails = fail_on_data_loss
        self._source = Source(config.client_rack)

    def chunks(self) -> Iterator[Chunk]:
        """What the leader sends, until the range is covered; the next request goes out before each yield."""
        position = self._range.start
        task = self._ask_for(position)
        try:
            while position < self._range.end:
                try:
                    fetched = self._result(task)
                except TopicRemade:
                    behind = f"[{position}, {self._range.end}) of {self._range.partition}"
                    self._lose(f"{behind} are gone with their topic, which was deleted and made again")
                    return
                if fetched is None:
                    position = self._skip_lost(position)
                    task = self._ask_for(position)
                    continue
                chunk, end_offset = fetched
                position = max(position, end_offset)
                if position < self._range.end:
                    task = self._ask_for(position)
                yield chunk
        finally:
            # Whoever stops early (a limit, an error) leaves no fetch to the next task of this process.
            self._client.engine.cancel(task)

    def _ask_for(self, position: int) -> Task[Fetched | None]:
        enough = max(FETCH_BYTES_MIN, (self._range.end - position) * ROW_BYTES_GUESS)
        config = replace(
            self._config, max_partition_fetch_bytes=min(self._config.max_partition_fetch_bytes, enough)
        )
        task = self._client.engine.spawn(
            fetch_once(self._client.engine, config, self._range, position, self._source)
        )
        self._client.turn(0)
        return task

    def _result(self, task: Task[Fetched | None]) -> Fetched | None:
        if not self._client.run_until(lambda: task.is_done, self._poll_timeout_ms):
            cause = self._client.engine.metadata_error
            raise SparkRefused(
                f"{self._range}: nothing could be fetched within kafkaConsumer.pollTimeoutMs="
                f"{self._poll_timeout_ms}{f' (last cause: {cause})' if cause else ''}",
                _REMEDY,
            )
        return task.result()

    def _skip_lost(self, position: int) -> int:
        """Offsets are gone: fail with exactly which, or go on behind them."""
        partition = self._range.partition
        earliest = self._end_of_log(EARLIEST)
        behind = min(earliest, self._range.end)
        if behind <= position:
            if self._end_of_log(LATEST) > position:
                return position
            lost = f"[{position}, {self._range.end}) of {partition} are beyond the end of the log"
            behind = self._range.end
        else:
            lost = (
                f"[{position}, {behind}) of {partition} are no longer in the log, which begins at {earliest}"
            )
            if self._range.is_from_earliest and position == self._range.start:
                return behind
        self._lose(lost)
        return behind

    def _end_of_log(self, which: int) -> int:
        partition = self._range.partition
        try:
            return self._client.run(list_offsets, {partition: which})[partition].offset
        except ClientError as error:
            raise SparkRefused(f"{self._range}: {error}", _REMEDY) from error

    def _lose(self, lost: str) -> None:
        if self._fails:
            raise DataLoss(
                f"data loss: offsets {lost}",
                "with failOnDataLoss=false the query goes on without them; "
                "raise the topic's retention, or read sooner",
            )
        log.warning("data loss partition=%s lost=%s", self._range.partition, lost)


def fetch_once(
    engine: Engine, config: ConsumerConfig, wanted: OffsetRange, position: int, source: Source
) -> Operation[Fetched | None]:
    """The batches from a position on; ``None`` if the log does not hold it. Tries until it is cancelled."""
    partition, topic_id = wanted.partition, wanted.topic_id
    engine.want_topics(partition.topic)
    attempts = corrupt = empty = strange = 0
    while True:
        try:
            row = yield from fetch_partition(
                engine,
                config,
                partition,
                position,
                broker=source.replica,
                rack=source.rack,
                topic_id=topic_id,
            )
            fetched = _chunk(partition, position, row, _kept(engine, row.records))
            if fetched is not None:
                return fetched
        except ClientError as error:
            if isinstance(error, CorruptBatch):
                corrupt += 1
            if topic_id is not None and _is_another(engine, partition.topic, topic_id):
                strange += 1
                if strange >= REMADE_ATTEMPTS:
                    raise TopicRemade(partition.topic) from error
            if not source.is_leader:
                source.stay_with_leader()
            elif isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                return None
            elif corrupt >= CORRUPT_ATTEMPTS or not (error.is_retriable or isinstance(error, CorruptBatch)):
                raise
            engine.refresh_soon()
            attempts += 1
            yield from sleep(engine.backoff_ms(attempts))
            continue
        # No data yet: the broker has waited for it, so we need not.
        if source.is_told_of(row.preferred_read_replica, engine) or row.high_watermark > position:
            continue
        empty += 1
        if not source.is_leader:
            source.stay_with_leader()
        elif empty >= EMPTY_ATTEMPTS:
            return None


def _is_another(engine: Engine, name: str, topic_id: TopicId) -> bool:
    """Whether the topic of this name is said to be another than the one that is meant."""
    topic = engine.metadata.topics.get(name)
    return topic is not None and topic.topic_id not in (topic_id, ZERO_UUID)


def _kept(engine: Engine, records: Buffer | None) -> Buffer:
    """The batches for longer than the call: where they are many the frame is kept, else they are copied."""
    if not isinstance(records, memoryview):
        return records or b""
    if len(records) < KEPT_BYTES_MIN:
        return bytes(records)
    engine.keep_frame()
    return records.toreadonly()


def _chunk(partition: TopicPartition, position: int, row: PartitionData, data: Buffer) -> Fetched | None:
    if not data:
        return None
    chunk = Chunk.of(partition, position, row, data)
    end_offset = _end_offset(chunk)
    if end_offset is None:
        raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"{partition}: no whole batch was sent")
    return chunk, end_offset


def _end_offset(chunk: Chunk) -> int | None:
    """Behind the last whole batch; the slow way says what is wrong where there is none."""
    _, end_offset = find_plain_batches(np.frombuffer(chunk.data, np.uint8), 0, -1, _NO_TABLE)
    return int(end_offset) if end_offset != NO_BATCH else chunk.end_offset()
