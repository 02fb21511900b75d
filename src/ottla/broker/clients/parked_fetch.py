"""One Fetch request on its way to its answer: read now, or park and read again when something changed."""

from ottla.broker.clients.connections import Connection
from ottla.broker.clients.fetch_answers import (
    FORBIDDEN,
    FOUND_BEFORE_READING,
    aborted_in,
    empty_row,
    plain_answer,
    row,
)
from ottla.broker.clients.fetch_context import FetchContext
from ottla.broker.clients.fetch_session import FetchSession
from ottla.broker.clients.leader_hints import LeaderHints
from ottla.broker.clients.nearest_replica import preferred_read_replica
from ottla.broker.clients.request import Request
from ottla.broker.outputs import Buffer
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.readers import FetchEntry, FetchReader
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import BrokerId, TopicId
from ottla.replication.fetch_checks import check_position
from ottla.storage.segment.log_slice import LogSlice
from ottla.wire.apis.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.headers import encoded_size

ZSTD_SINCE = 10
CONSUMERS_READ_FOLLOWERS_SINCE = 11
TOPIC_IDS_SINCE = 13
LEADER_HINTS_SINCE = 16
WARMED_AHEAD_BYTES = 8 * 1024 * 1024
"""How far ahead of a reader of old records the next ones are brought into memory."""

_UNKNOWN_TOPIC = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
_STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
_INCONSISTENT_ID = int(ErrorCode.INCONSISTENT_TOPIC_ID)
_UNKNOWN_EPOCH = int(ErrorCode.UNKNOWN_LEADER_EPOCH)
_FENCED_EPOCH = int(ErrorCode.FENCED_LEADER_EPOCH)
_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_UNKNOWN_CODEC = int(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_HINTED = (_NOT_LEADER, _FENCED_EPOCH)


class ParkedFetch:
    """A fetch and its reader. ``begin`` answers or parks; ``look_again`` and ``expire`` answer later."""

    __slots__ = (
        "_bytes",
        "_bytes_in_reach",
        "_context",
        "_is_warm",
        "_must_answer",
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
        context: FetchContext,
        request: Request,
        reader: FetchReader,
        *,
        min_bytes: int,
        max_bytes: int,
        is_committed_only: bool,
        rack: str,
    ) -> None:
        self._context = context
        self.request = request
        self.reader = reader
        self.version = request.api_version
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.is_committed_only = is_committed_only
        self.rack = rack
        self.deadline_ms = 0
        self._bytes = 0
        self._bytes_in_reach = 0
        self._must_answer = False
        self._is_warm = False

    @property
    def connection(self) -> Connection:
        return self.request.connection

    # --- answer now or later --------------------------------------------------------------------

    def begin(self, max_wait_ms: int) -> FetchResponse | None:
        """Note a follower's position, read, and answer at once if there is something to say."""
        context, reader = self._context, self.reader
        is_follower = reader.replica_id >= 0
        reader.last_fetch_ms = context.clock.monotonic_ms()
        looked = self._read(is_first=True)
        plain: list[Buffer] | None = None
        response: FetchResponse | None = None
        if max_wait_ms > 0 and not reader.is_empty and not self._has_enough:
            self._park(looked, max_wait_ms)
        elif not self._must_warm(looked):
            plain = self._plain_answer(looked)
            response = self._answer(looked) if plain is None else None
        if is_follower:
            # Last: a coordinator may append to a log that was read above, and that is news.
            context.waiting.settle_producers()
        if plain is not None:
            self.request.reply_encoded(plain)
        return response

    @property
    def _has_enough(self) -> bool:
        return self._must_answer or self._bytes_in_reach >= self.min_bytes

    def look_again(self) -> None:
        """Something changed: answer if it is enough."""
        looked = self._read(is_first=False)
        if self._has_enough:
            self._context.waiting.deadlines.remove(self)
            if not self._must_warm(looked):
                self._reply(looked)

    def answer_now(self) -> None:
        """Do not wait any longer, for whatever reason."""
        self._context.waiting.deadlines.remove(self)
        self.expire()

    def expire(self) -> None:
        """The reader has waited long enough: answer with what there is."""
        self._reply(self._read(is_first=False))

    def _reply(self, looked: list[FetchEntry]) -> None:
        plain = self._plain_answer(looked)
        if plain is not None:
            self.request.reply_encoded(plain)
        else:
            self.request.reply(self._answer(looked))

    def _must_warm(self, looked: list[FetchEntry]) -> bool:
        """Have old records brought into memory by a thread first: the loop must not wait for the disk."""
        if self._is_warm:
            return False
        cold: list[tuple[Partition, LogSlice]] = []
        for entry in looked:
            partition, records = entry.partition, entry.records
            if records is not None and partition is not None and partition.is_cold(records):
                cold.append((partition, records))
        if not cold:
            return False
        self._is_warm = True
        self.reader.parked = None

        def warm() -> None:
            for _, records in cold:
                records.warm(WARMED_AHEAD_BYTES)

        def warmed(_: object) -> None:
            for partition, records in cold:
                end = records.position + max(records.size, WARMED_AHEAD_BYTES)
                partition.warm = (records.segment_base_offset, records.position, end)
            if self.request.is_abandoned:
                self.abandon()
            else:
                self.expire()

        self._context.runtime.threads.run(warm, warmed)
        return True

    def abandon(self) -> None:
        """The client has gone; a session may be taken up again by another connection."""
        if self.reader.parked is self:
            self.reader.parked = None
        if not isinstance(self.reader, FetchSession):
            self.reader.finished()

    def _park(self, looked: list[FetchEntry], max_wait_ms: int) -> None:
        reader = self.reader
        if reader.is_incremental:
            self._keep_only_news(looked)
        elif not isinstance(reader, FetchSession):
            for entry in reader.dirty:
                if entry.partition is not None:
                    entry.partition.watchers[entry] = None
        reader.parked = self
        self._context.waiting.deadlines.add(self, max_wait_ms)

    # --- read -------------------------------------------------------------------------------------

    def _read(self, *, is_first: bool) -> list[FetchEntry]:
        """Look at every partition that may have news, as far as the bytes go."""
        reader = self.reader
        looked: list[FetchEntry] = []
        left = self.max_bytes
        found = 0
        self._bytes_in_reach = 0
        self._must_answer = False
        counts = is_first and reader.replica_id >= 0
        may_stop = reader.is_incremental and not counts
        for entry in list(reader.dirty):
            if may_stop and found and left <= 0:
                break
            self._look(entry, left, not found, counts)
            if entry.records is not None:
                found += entry.records.size
                left -= entry.records.size
            looked.append(entry)
        self._bytes = found
        return looked

    def _look(self, entry: FetchEntry, left: int, min_one_batch: bool, counts: bool) -> None:
        """Check and read one partition; what came of it is noted in the entry."""
        entry.error = 0
        entry.records = None
        entry.has_more = False
        entry.diverging = None
        entry.preferred_replica = -1
        partition = entry.partition
        if self.request.access is not None and self._context.is_forbidden(
            entry, self.version, self.request.access
        ):
            self._refuse(entry, FORBIDDEN)
            return
        if partition is None:
            resolved = self._resolve(entry)
            if isinstance(resolved, int):
                self._refuse(entry, resolved)
                return
            partition = resolved
            # A fetch that came before its leader knew of the topic: its word has not been taken yet.
            counts = self.reader.replica_id >= 0
        if code := self._check(partition, entry):
            self._refuse(entry, code)
            return
        try:
            if self._is_at_home(partition, entry):
                if counts:
                    partition.follower_fetched(entry, self.reader.last_fetch_ms)
                self._read_log(entry, partition, left, min_one_batch)
        except LogDirectoryFailed as failed:
            self._context.partitions.directory_failed(failed)
            self._refuse(entry, _STORAGE_ERROR)

    def _is_at_home(self, partition: Partition, entry: FetchEntry) -> bool:
        """Is the position within the log, and no wrong tail behind it? Most readers are at its end."""
        log = partition.log
        epoch, offset = entry.last_fetched_epoch, entry.fetch_offset
        if log.log_start_offset <= offset <= log.end_offset and epoch in (-1, log.epochs.latest_epoch):
            return True
        position = check_position(
            log.epochs,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            log_start_offset=log.log_start_offset,
            end_offset=log.end_offset,
        )
        if isinstance(position, int):
            if (
                position == _OUT_OF_RANGE
                and offset > log.end_offset
                and self._context.runtime.may_be_deposed()
            ):
                position = _NOT_LEADER  # Others lead, and have told the reader more. It must not begin anew.
            if position:
                self._refuse(entry, position)
            return not position
        self._must_answer = True
        entry.diverging = position
        return False

    def _read_log(self, entry: FetchEntry, partition: Partition, left: int, min_one_batch: bool) -> None:
        log = partition.log
        replica_id = self.reader.replica_id
        if replica_id >= 0:
            limit = log.end_offset
            if self._context.throttles.leader_holds_back(partition, replica_id):
                entry.has_more = entry.fetch_offset < limit
                return
        else:
            limit = log.last_stable_offset if self.is_committed_only else log.high_watermark
            if self.rack and self._send_elsewhere(entry, partition):
                return
        if entry.fetch_offset >= limit:
            return
        entry.has_more = True
        max_bytes = min(entry.max_bytes, left) if left > 0 else 0
        records = log.read(entry.fetch_offset, max_bytes, limit, min_one_batch)
        if records is None:
            self._refuse(entry, _OUT_OF_RANGE)
            return
        # Where the reader's limit or the end of an old segment cuts, waiting would bring nothing more.
        self._bytes_in_reach += max(records.size, min(records.available, max_bytes))
        self._must_answer |= records.is_behind
        if records.size:
            entry.records = records

    def _send_elsewhere(self, entry: FetchEntry, partition: Partition) -> bool:
        """Name a replica that is nearer to the consumer, if there is one."""
        if partition.leader is None:
            return False
        entry.preferred_replica = preferred_read_replica(
            self._context.runtime,
            self._context.metadata,
            partition,
            self.rack,
            self.request.listener,
            entry.fetch_offset,
        )
        if entry.preferred_replica < 0:
            return False
        self._must_answer = True
        return True

    # --- checks -----------------------------------------------------------------------------------

    def _resolve(self, entry: FetchEntry) -> Partition | int:
        """Find the hosted partition of an entry; a session's entry then watches it."""
        context = self._context
        topic = entry.topic
        if self.version >= TOPIC_IDS_SINCE:
            name = context.metadata.topic_names.get(entry.topic_id)
            if name is None:
                return _UNKNOWN_TOPIC_ID
            topic = name
        known = context.metadata.topics.get(topic)
        if known is None or entry.index not in known.partitions:
            return _UNKNOWN_TOPIC
        partition = context.partitions.find(topic, entry.index)
        if partition is None:
            return _STORAGE_ERROR if context.partitions.is_offline(topic, entry.index) else _NOT_LEADER
        if self.version >= TOPIC_IDS_SINCE and partition.log.topic_id not in (None, entry.topic_id):
            return _INCONSISTENT_ID
        entry.partition = partition
        if isinstance(entry.reader, FetchSession):
            partition.watchers[entry] = None
        return partition

    def _check(self, partition: Partition, entry: FetchEntry) -> int:
        """Check leader epoch, role of this broker, and replica id."""
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

    def _refuse(self, entry: FetchEntry, code: int) -> None:
        entry.error = code
        if code not in FOUND_BEFORE_READING:
            self._must_answer = True

    # --- answer -----------------------------------------------------------------------------------

    def _plain_answer(self, looked: list[FetchEntry]) -> list[Buffer] | None:
        """The whole answer where records of one partition are all there is to say, otherwise None."""
        reader, entry = self.reader, looked[0] if len(looked) == 1 else None
        hears_of_aborted = self.is_committed_only and reader.replica_id < 0
        if entry is None or hears_of_aborted or self.connection.quotas is not None or self.request.amend:
            return None
        parts = plain_answer(self.request, reader, entry)
        if parts is not None:
            if reader.replica_id >= 0 and entry.partition is not None:
                self._context.throttles.leader_sent(entry.partition, self._bytes)
            if reader.parked is self:
                reader.parked = None
            self._told(looked)
        return parts

    def _told(self, looked: list[FetchEntry]) -> None:
        """The answer is made: remember and count what it says."""
        reader, meters = self.reader, self._context.meters
        self._remember(looked)
        if reader.replica_id >= 0:
            meters.replication_bytes_out += self._bytes
        else:
            meters.bytes_out += self._bytes

    def _answer(self, looked: list[FetchEntry]) -> FetchResponse:
        context, reader = self._context, self.reader
        if reader.parked is self:  # another may have parked while a thread worked for this one
            reader.parked = None
        is_incremental = reader.is_incremental
        topics: dict[str | TopicId, FetchableTopicResponse] = {}
        uses_ids = self.version >= TOPIC_IDS_SINCE
        hints: LeaderHints | None = None
        for entry in looked:
            if is_incremental and not entry.is_news:
                continue
            data = self._data(entry)
            if data.error_code in _HINTED and self.version >= LEADER_HINTS_SINCE:
                hints = hints or LeaderHints(
                    self._context.partitions, self._context.metadata, self.request.listener
                )
                name = context.metadata.topic_names.get(entry.topic_id, entry.topic)
                data.current_leader = LeaderIdAndEpoch(*hints.current_leader(name, entry.index))
            key = entry.topic_id if uses_ids else entry.topic
            topic = topics.get(key)
            if topic is None:
                topics[key] = FetchableTopicResponse(entry.topic, entry.topic_id, [data])
            else:
                topic.partitions.append(data)
        session_id = reader.id if isinstance(reader, FetchSession) else 0
        response = FetchResponse(session_id=session_id, responses=list(topics.values()))
        if hints is not None:
            response.node_endpoints = [NodeEndpoint(*each) for each in hints.endpoints()]
        if (quotas := self.connection.quotas) is not None and reader.replica_id < 0:
            wait_ms = quotas.charge_fetch(self.request, lambda: encoded_size(response, self.version))
            if wait_ms:
                return self._throttled(session_id, wait_ms)
        self._told(looked)
        return response

    def _throttled(self, session_id: int, wait_ms: int) -> FetchResponse:
        """Nothing but how long to wait: the session knows as much as before."""
        reader = self.reader
        self.connection.mute(wait_ms)
        if not isinstance(reader, FetchSession):
            reader.finished()
        for entry in reader.dirty:
            entry.records = None
        return FetchResponse(session_id=session_id, throttle_time_ms=wait_ms)

    def _data(self, entry: FetchEntry) -> PartitionData:
        """One partition's row; a disk that fails now fails this partition only.

        A topic whose codec the reader's version does not know is refused here, whatever else there is to say.
        """
        partition = entry.partition
        if partition is not None and not self._knows_codec(partition):
            return empty_row(entry, _UNKNOWN_CODEC)
        if not entry.error and partition is not None:
            try:
                return self._row(entry, partition)
            except LogDirectoryFailed as failed:
                self._context.partitions.directory_failed(failed)
        if not entry.error:
            entry.error = _STORAGE_ERROR
        return empty_row(entry, entry.error)

    def _knows_codec(self, partition: Partition) -> bool:
        return self.version >= ZSTD_SINCE or partition.log.config.compression_type != "zstd"

    def _row(self, entry: FetchEntry, partition: Partition) -> PartitionData:
        log = partition.log
        records = entry.records
        data = row(entry, log)
        if self.reader.replica_id >= 0:
            if records is not None:
                self._context.throttles.leader_sent(partition, records.size)
            return data
        data.preferred_read_replica = entry.preferred_replica
        if self.is_committed_only:
            data.aborted_transactions = (
                [] if records is None else aborted_in(records, entry.fetch_offset, log)
            )
        return data

    def _remember(self, looked: list[FetchEntry]) -> None:
        """What was told is known now; only what may have more to tell stays on the list."""
        reader = self.reader
        if isinstance(reader, FetchSession):
            for entry in looked:
                log = entry.partition.log if entry.partition is not None and not entry.error else None
                entry.told_high_watermark = -1 if log is None else log.high_watermark
                entry.told_log_start_offset = -1 if log is None else log.log_start_offset
            self._keep_only_news(looked)
        reader.finished()

    def _keep_only_news(self, looked: list[FetchEntry]) -> None:
        """Partitions with data go to the end of the line, so that none starves the others; a follower
        outside the ISR is looked at each time, because its next fetch may bring it in."""
        dirty = self.reader.dirty
        replica_id = self.reader.replica_id
        for entry in looked:
            has_records = entry.records is not None
            is_outside = replica_id >= 0 and (
                entry.partition is None or not entry.partition.has_in_sync(replica_id)
            )
            if has_records or not (entry.has_more or is_outside or entry.is_news):
                dirty.pop(entry, None)
            if has_records:
                entry.records = None
                dirty[entry] = None
