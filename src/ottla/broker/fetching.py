"""One Fetch request on its way to its answer: read now, or park and read again when something changed."""

from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.connections import Connection
from ottla.broker.fetch_sessions import FetchEntry, FetchReader, FetchSession
from ottla.broker.leader_hints import LeaderHints
from ottla.broker.partition import Partition
from ottla.broker.preferred_replica import preferred_read_replica
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import BrokerId, TopicId
from ottla.replication.fetch_checks import check_position
from ottla.storage.outcomes import LogSlice
from ottla.wire.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

CONSUMERS_READ_FOLLOWERS_SINCE = 11
TOPIC_IDS_SINCE = 13
LEADER_HINTS_SINCE = 16

_UNKNOWN_TOPIC = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_INCONSISTENT_ID = int(ErrorCode.INCONSISTENT_TOPIC_ID)
_UNKNOWN_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)
_FENCED_EPOCH = int(ErrorCode.FENCED_LEADER_EPOCH)
_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_FOUND_BEFORE_READING = (_UNKNOWN_TOPIC, _UNKNOWN_TOPIC_ID)
_HINTED = (_NOT_LEADER, _FENCED_EPOCH)


class Read(NamedTuple):
    """What one look at one partition gave."""

    entry: FetchEntry
    data: PartitionData
    records: LogSlice | None = None
    has_more: bool = False
    """There are records to read, whether or not there was room for them."""

    @property
    def is_news(self) -> bool:
        """Would an incremental answer name this partition?"""
        data = self.data
        return (
            self.records is not None
            or data.error_code != 0
            or data.high_watermark != self.entry.told_high_watermark
            or data.log_start_offset != self.entry.told_log_start_offset
            or data.diverging_epoch.end_offset >= 0
            or data.preferred_read_replica >= 0
        )


class ParkedFetch:
    """A fetch and its reader. ``begin`` answers or parks; ``look_again`` and ``expire`` answer later."""

    __slots__ = (
        "_bytes",
        "_must_answer",
        "_node",
        "deadline_ms",
        "is_committed_only",
        "max_bytes",
        "min_bytes",
        "rack",
        "reader",
        "request",
        "version",
    )

    def __init__(
        self,
        node: "Node",
        request: Request,
        reader: FetchReader,
        *,
        min_bytes: int,
        max_bytes: int,
        is_committed_only: bool,
        rack: str,
    ) -> None:
        self._node = node
        self.request = request
        self.reader = reader
        self.version = request.api_version
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.is_committed_only = is_committed_only
        self.rack = rack
        self.deadline_ms = 0
        self._bytes = 0
        self._must_answer = False

    @property
    def connection(self) -> Connection:
        return self.request.connection

    # --- answer now or later --------------------------------------------------------------------

    def begin(self, max_wait_ms: int) -> FetchResponse | None:
        """Take a follower's word, read, and answer at once if there is something to say."""
        node, reader = self._node, self.reader
        is_follower = reader.replica_id >= 0
        reader.last_fetch_ms = node.clock.monotonic_ms()
        reads = self._read(is_first=True)
        if is_follower:
            node.waiting.settle_producers()
        if max_wait_ms <= 0 or reader.is_empty or self._must_answer or self._bytes >= self.min_bytes:
            return self._answer(reads)
        self._park(reads, max_wait_ms)
        return None

    def look_again(self) -> None:
        """Something changed: answer if it is enough."""
        reads = self._read(is_first=False)
        if self._must_answer or self._bytes >= self.min_bytes:
            self._node.waiting.deadlines.remove(self)
            self.request.reply(self._answer(reads))

    def answer_now(self) -> None:
        """Do not wait any longer, for whatever reason."""
        self._node.waiting.deadlines.remove(self)
        self.expire()

    def expire(self) -> None:
        """The reader has waited long enough: answer with what there is."""
        self.request.reply(self._answer(self._read(is_first=False)))

    def abandon(self) -> None:
        """The client has gone; a session may be taken up again by another connection."""
        self.reader.parked = None
        if not isinstance(self.reader, FetchSession):
            self.reader.finished()

    def _park(self, reads: list[Read], max_wait_ms: int) -> None:
        reader = self.reader
        if reader.is_incremental:
            self._keep_only_news(reads)
        elif not isinstance(reader, FetchSession):
            for entry in reader.dirty:
                if entry.partition is not None:
                    entry.partition.watchers[entry] = None
        reader.parked = self
        self._node.waiting.deadlines.add(self, max_wait_ms)

    # --- read -------------------------------------------------------------------------------------

    def _read(self, *, is_first: bool) -> list[Read]:
        """Look at every partition that may have news, as far as the bytes go."""
        reads: list[Read] = []
        left = self.max_bytes
        found = 0
        self._must_answer = False
        counts = is_first and self.reader.replica_id >= 0
        may_stop = self.reader.is_incremental
        for entry in list(self.reader.dirty):
            if left <= 0 and found and may_stop and not counts:
                break
            read = self._read_entry(entry, left, not found, counts)
            if read.records is not None:
                found += read.records.size
                left -= read.records.size
            reads.append(read)
        self._bytes = found
        return reads

    def _read_entry(self, entry: FetchEntry, left: int, min_one_batch: bool, counts: bool) -> Read:
        partition = entry.partition
        if partition is None:
            resolved = self._resolve(entry)
            if isinstance(resolved, int):
                return self._refused(entry, resolved)
            partition = resolved
        if code := self._check(partition, entry):
            return self._refused(entry, code)
        log = partition.log
        position = check_position(
            log.epochs,
            fetch_offset=entry.fetch_offset,
            last_fetched_epoch=entry.last_fetched_epoch,
            log_start_offset=log.log_start_offset,
            end_offset=log.end_offset,
        )
        if position:
            if isinstance(position, int):
                return self._refused(entry, position)
            self._must_answer = True
            data = self._data(entry, partition)
            data.diverging_epoch = EpochEndOffset(position.epoch, position.end_offset)
            return Read(entry, data)
        if counts:
            partition.follower_fetched(entry, self.reader.last_fetch_ms)
        try:
            return self._read_log(entry, partition, left, min_one_batch)
        except LogDirectoryFailed as failed:
            partition.host.directory_failed(failed)
            return self._refused(entry, _STORAGE_ERROR)

    def _read_log(self, entry: FetchEntry, partition: Partition, left: int, min_one_batch: bool) -> Read:
        log = partition.log
        data = self._data(entry, partition)
        max_bytes = min(entry.max_bytes, left) if left > 0 else 0
        if self.reader.replica_id >= 0:
            limit = log.end_offset
            if self._node.partitions.throttles.leader_holds_back(partition, self.reader.replica_id):
                return Read(entry, data, has_more=entry.fetch_offset < limit)
        else:
            limit = data.last_stable_offset if self.is_committed_only else data.high_watermark
            preferred = self._preferred_replica(entry, partition)
            if preferred >= 0:
                self._must_answer = True
                data.preferred_read_replica = preferred
                return Read(entry, data)
        records = log.read(entry.fetch_offset, max_bytes, limit, min_one_batch)
        if records is None:
            return self._refused(entry, _OUT_OF_RANGE)
        if self.is_committed_only and self.reader.replica_id < 0:
            data.aborted_transactions = self._aborted(entry, partition, records, limit)
        return Read(entry, data, records if records.size else None, entry.fetch_offset < limit)

    def _data(self, entry: FetchEntry, partition: Partition) -> PartitionData:
        log = partition.log
        return PartitionData(
            partition_index=entry.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )

    def _aborted(
        self, entry: FetchEntry, partition: Partition, records: LogSlice, limit: int
    ) -> list[AbortedTransaction]:
        if not records.size:
            return []
        return [
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in partition.log.aborted_transactions(entry.fetch_offset, records, limit)
        ]

    # --- checks -----------------------------------------------------------------------------------

    def _resolve(self, entry: FetchEntry) -> Partition | int:
        """Find the hosted partition of an entry; a session's entry then watches it."""
        node = self._node
        topic = entry.topic
        if self.version >= TOPIC_IDS_SINCE:
            name = node.metadata.topic_names.get(entry.topic_id)
            if name is None:
                return _UNKNOWN_TOPIC_ID
            topic = name
        known = node.metadata.topics.get(topic)
        if known is None or entry.index not in known.partitions:
            return _UNKNOWN_TOPIC
        partition = node.partitions.find(topic, entry.index)
        if partition is None:
            return _STORAGE_ERROR if node.partitions.is_offline(topic, entry.index) else _NOT_LEADER
        if self.version >= TOPIC_IDS_SINCE and partition.log.topic_id not in (None, entry.topic_id):
            return _INCONSISTENT_ID
        entry.partition = partition
        if isinstance(entry.reader, FetchSession):
            partition.watchers[entry] = None
        return partition

    def _check(self, partition: Partition, entry: FetchEntry) -> int:
        """Whose epoch, whose role, whose replica."""
        if entry.leader_epoch != partition.leader_epoch and (
            code := partition.check_epoch(entry.leader_epoch)
        ):
            return code
        leader = partition.leader
        replica_id = self.reader.replica_id
        if leader is None:
            serves = replica_id < 0 and self.version >= CONSUMERS_READ_FOLLOWERS_SINCE
            return 0 if serves else _NOT_LEADER
        if replica_id >= 0 and not leader.may_fetch(BrokerId(replica_id), self.reader.replica_epoch):
            return _UNKNOWN_EPOCH if entry.leader_epoch >= 0 else _NOT_LEADER
        return 0

    def _preferred_replica(self, entry: FetchEntry, partition: Partition) -> int:
        if not self.rack or partition.leader is None:
            return -1
        return preferred_read_replica(
            self._node, partition, self.rack, self.request.listener, entry.fetch_offset
        )

    def _refused(self, entry: FetchEntry, code: int) -> Read:
        if code not in _FOUND_BEFORE_READING:
            self._must_answer = True
        data = PartitionData(
            partition_index=entry.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=[] if code in _FOUND_BEFORE_READING else None,
            records=b"",
        )
        return Read(entry, data)

    # --- answer -----------------------------------------------------------------------------------

    def _answer(self, reads: list[Read]) -> FetchResponse:
        reader = self.reader
        reader.parked = None
        response = FetchResponse(session_id=reader.id if isinstance(reader, FetchSession) else 0)
        is_incremental = reader.is_incremental
        topics: dict[str | TopicId, FetchableTopicResponse] = {}
        uses_ids = self.version >= TOPIC_IDS_SINCE
        for read in reads:
            if is_incremental and not read.is_news:
                continue
            entry = read.entry
            if read.records is not None:
                self._fill(read, read.records)
            key = entry.topic_id if uses_ids else entry.topic
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchableTopicResponse(
                    topic=entry.topic, topic_id=entry.topic_id, partitions=[]
                )
            topic.partitions.append(read.data)
        response.responses = list(topics.values())
        if self.version >= LEADER_HINTS_SINCE:
            self._add_hints(reads, response)
        self._remember(reads)
        return response

    def _fill(self, read: Read, records: LogSlice) -> None:
        """Put the record bytes in; a disk that fails now fails this partition only."""
        data, partition = read.data, read.entry.partition
        assert partition is not None, "records come from a partition"
        try:
            data.records = records.buffer()
        except LogDirectoryFailed as failed:
            partition.host.directory_failed(failed)
            data.error_code = _STORAGE_ERROR
            data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
            return
        if self.reader.replica_id >= 0:
            self._node.partitions.throttles.leader_sent(partition, records.size)

    def _add_hints(self, reads: list[Read], response: FetchResponse) -> None:
        hints: LeaderHints | None = None
        for entry, data, _, _ in reads:
            if data.error_code in _HINTED:
                if hints is None:
                    hints = LeaderHints(self._node, self.request.listener)
                topic = self._node.metadata.topic_names.get(entry.topic_id, entry.topic)
                data.current_leader = LeaderIdAndEpoch(*hints.current_leader(topic, entry.index))
        if hints is not None:
            response.node_endpoints = [NodeEndpoint(*each) for each in hints.endpoints()]

    def _remember(self, reads: list[Read]) -> None:
        """What was told is known now; only what may have more to tell stays on the list."""
        reader = self.reader
        if isinstance(reader, FetchSession):
            for read in reads:
                entry, data = read.entry, read.data
                entry.told_high_watermark = data.high_watermark
                entry.told_log_start_offset = data.log_start_offset
            self._keep_only_news(reads)
        reader.finished()

    def _keep_only_news(self, reads: list[Read]) -> None:
        """Partitions with data go to the end of the line, so that none starves the others; a follower
        outside the ISR is looked at each time, because its next fetch may bring it in."""
        dirty = self.reader.dirty
        replica_id = self.reader.replica_id
        for read in reads:
            entry = read.entry
            is_outside = replica_id >= 0 and (
                entry.partition is None or not entry.partition.has_in_sync(replica_id)
            )
            if read.records is not None or not (read.has_more or read.is_news or is_outside):
                dirty.pop(entry, None)
            if read.records is not None:
                dirty[entry] = None
