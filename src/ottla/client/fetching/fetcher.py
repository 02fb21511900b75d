"""The consumer's core: assigned partitions, one or two fetches per broker at a time."""

from collections.abc import Iterable, Mapping

from ottla.client.config import ConsumerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import BrokerLane, Operation, Signal, ask, wait_for
from ottla.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    CorruptBatch,
    LogTruncated,
    OffsetOutOfRange,
    UnsupportedByBroker,
)
from ottla.client.fetching.assigned import Assigned
from ottla.client.fetching.decoding import NO_EPOCH, Chunk, ChunkReader, Position
from ottla.client.fetching.fetch_partition import fetch_request
from ottla.client.fetching.offsets import ask_leader, why_unknown
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.record import Record
from ottla.wire.apis.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

FETCH_LANE = "fetch"


class FetchCore:
    """Fetches the assigned partitions; the edge waits for ``data_came``, then calls ``take``."""

    def __init__(self, engine: Engine, config: ConsumerConfig) -> None:
        self.config = config
        self.data_came = Signal()
        """Fires when ``take`` would return records or raise an error."""
        self._engine = engine
        self._assigned: dict[TopicPartition, Assigned] = {}
        self._asked: set[int | BrokerLane] = set()
        """Brokers, and second connections to them, with a fetch in flight."""
        self._asked_for_offsets: set[int] = set()
        """Brokers with a ListOffsets request in flight."""
        self._tells_epochs = True
        self._wake = Signal()
        engine.spawn(self._pump())
        engine.spawn(self._watch_metadata())

    # What users do

    def assign(self, positions: Mapping[TopicPartition, int | Position]) -> None:
        """Read only these partitions, each from an offset, ``EARLIEST`` or ``LATEST``.

        A partition that stays assigned is moved as well. The leader epoch of a position shows whether the log
        was truncated before it.
        """
        self._assigned = {}
        self.add(positions)

    def add(self, positions: Mapping[TopicPartition, int | Position]) -> None:
        """Read these partitions in addition."""
        for partition, start in positions.items():
            state = self._assigned[partition] = Assigned(partition)
            state.move_to(*(start if isinstance(start, Position) else (start,)))
        self._engine.want_topics(*{partition.topic for partition in positions})
        self._engine.fire(self._wake)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions; fetched records of the others are kept."""
        for partition in partitions:
            self._assigned.pop(partition, None)

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._assigned)

    def seek(self, partition: TopicPartition, start: int | Position) -> None:
        """Continue from an offset, ``EARLIEST`` or ``LATEST``."""
        self._assigned[partition].move_to(*(start if isinstance(start, Position) else (start,)))
        self._engine.fire(self._wake)

    def pause(self, partitions: Iterable[TopicPartition], is_paused: bool = True) -> None:
        """Return no records of these partitions until they are resumed."""
        for partition in partitions:
            self._assigned[partition].is_paused = is_paused
        self._engine.fire(self._wake)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; ``None`` while it is not known."""
        position = self._assigned[partition].position
        return position if position >= 0 else None

    def positions(self) -> dict[TopicPartition, Position]:
        """The known positions, each with the leader epoch of the record before it."""
        found = {name: state.known_position() for name, state in self._assigned.items()}
        return {name: position for name, position in found.items() if position is not None}

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark of the last response; ``None`` before the first."""
        high_watermark = self._assigned[partition].high_watermark
        return high_watermark if high_watermark >= 0 else None

    def take(self, count_max: int) -> dict[TopicPartition, list[Record]]:
        """Fetched records, at most ``count_max``; an error that is not retriable is raised instead.

        If there are records to return, the error waits for the next call and is raised before other records.
        """
        taken: dict[TopicPartition, list[Record]] = {}
        for state in list(self._assigned.values()):
            while count_max > 0 and (records := self._take_from(state, count_max)):
                taken.setdefault(state.name, []).extend(records)
                count_max -= len(records)
            if not taken:
                self._raise_error(state)
        if taken:
            self._take_turns(taken)
            self._engine.fire(self._wake)
        return taken

    def _raise_error(self, state: Assigned) -> None:
        """Raise the error of a partition without records before it."""
        if state.error is not None and not state.has_bytes:
            error, state.error = state.error, None
            self._engine.fire(self._wake)
            raise error

    @property
    def has_data(self) -> bool:
        """Whether ``take`` would return records or raise an error."""
        return any(
            s.error is not None or s.chunks or s.reader for s in self._assigned.values() if not s.is_paused
        )

    def _take_from(self, state: Assigned, count_max: int) -> list[Record]:
        while not state.is_paused:
            if state.reader is None:
                if not state.chunks:
                    return []
                state.reader = ChunkReader(
                    state.chunks.popleft(),
                    skips_aborted=self.config.isolation_level == "read_committed",
                    checks_crcs=self.config.check_crcs,
                    leader_epoch=state.position_epoch,
                )
            try:
                records = state.reader.take(count_max)
            except CorruptBatch as corrupt:
                state.move_to(state.reader.next_offset, state.reader.leader_epoch)
                state.error = corrupt
                return []
            state.reached(state.reader.next_offset, state.reader.leader_epoch)
            if records:
                return records
            state.reader = None
        return []

    def _take_turns(self, taken: Iterable[TopicPartition]) -> None:
        """Move partitions that were read to the end, so that no partition starves."""
        for partition in taken:
            self._assigned[partition] = self._assigned.pop(partition)

    # Fetching

    def _pump(self) -> Operation[None]:
        while True:
            now_ms = self._engine.now_ms
            self._locate(now_ms)
            for source, states in self._fetchable(now_ms).items():
                self._ask_for(source, states)
            later = [s.not_before_ms for s in self._assigned.values() if s.not_before_ms > now_ms]
            wait_ms = min(later) - now_ms if later else None
            yield from wait_for(self._wake, wait_ms)

    def _watch_metadata(self) -> Operation[None]:
        while True:
            yield from wait_for(self._engine.metadata_came)
            self._engine.fire(self._wake)

    def _fetchable(self, now_ms: int) -> dict[int, list[Assigned]]:
        """By the broker to ask: partitions to fetch that are in no request in flight."""
        found: dict[int, list[Assigned]] = {}
        for state in self._assigned.values():
            if state.fetch is None and state.is_fetchable(now_ms):
                source = self._source_of(state, now_ms)
                if source is None:
                    self._engine.refresh_soon()
                else:
                    found.setdefault(source, []).append(state)
        return found

    def _ask_for(self, source: int, states: list[Assigned]) -> None:
        """Fetch by a second connection if the first one is busy: a fetch without new records waits long at
        the broker, and other partitions must not wait behind it."""
        lanes: tuple[int | BrokerLane, ...] = (source, BrokerLane(source, FETCH_LANE))
        free = [lane for lane in lanes if lane not in self._asked]
        if free:
            self._asked.add(free[0])
            self._engine.spawn(self._fetch_from(source, free[0], states))

    def _source_of(self, state: Assigned, now_ms: int) -> int | None:
        metadata = self._engine.metadata
        return state.source(metadata.leader_of(state.name), metadata.brokers, now_ms)

    def _fetch_from(self, source: int, lane: int | BrokerLane, states: list[Assigned]) -> Operation[None]:
        offsets = {state.name: state.fetch_offset for state in states}
        request, version_max = self._request(states)
        for state in states:
            state.fetch = request
        timeout_ms = self._engine.config.request_timeout_ms + self.config.fetch_max_wait_ms
        try:
            response = yield from ask(
                lane, request, FetchResponse, version_max=version_max, timeout_ms=timeout_ms
            )
            if response.error_code:
                raise BrokerError(response.error_code)
        except ClientClosed:
            return
        except ClientError as error:
            if isinstance(error, UnsupportedByBroker) and self._tells_epochs:
                self._tells_epochs = False  # A broker before Kafka 2.7 has no last_fetched_epoch.
            else:
                for state in states:
                    self._failed(state, error, source)
        else:
            self._take_response(source, offsets, response)
        self._asked.discard(lane)
        for state in states:
            if state.fetch is request:
                state.fetch = None
        self._engine.fire(self._wake)
        if self.has_data:
            self._engine.fire(self.data_came)

    def _request(self, states: list[Assigned]) -> tuple[FetchRequest, int | None]:
        topics: dict[str, FetchTopic] = {}
        for state in states:
            info = self._engine.metadata.partition(state.name)
            leader_epoch = info.leader_epoch if info is not None else NO_EPOCH
            is_told = self._tells_epochs and state.fetch_epoch <= leader_epoch
            name = state.name.topic
            if name not in topics:
                topics[name] = FetchTopic(topic=name, topic_id=self._engine.metadata.topics[name].topic_id)
            topics[name].partitions.append(
                FetchPartition(
                    partition=state.name.partition,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=state.fetch_offset,
                    # An epoch ahead of the leader's belongs to a deleted topic of the same name, or the
                    # metadata are old: do not send it.
                    last_fetched_epoch=state.fetch_epoch if is_told else NO_EPOCH,
                    partition_max_bytes=self.config.max_partition_fetch_bytes,
                )
            )
        return fetch_request(self.config, list(topics.values()), self.config.client_rack)

    def _take_response(
        self, source: int, offsets: Mapping[TopicPartition, int], response: FetchResponse
    ) -> None:
        for topic in response.responses:
            name = topic.topic or self._engine.metadata.name_of(topic.topic_id)
            for row in topic.partitions:
                partition = TopicPartition(name or "", row.partition_index)
                state = self._assigned.get(partition)
                if state is None or state.fetch_offset != offsets.get(partition):
                    continue  # Unassigned or moved since: ignore these bytes.
                if row.error_code:
                    self._engine.metadata.learn_leader(partition, row.current_leader, response.node_endpoints)
                    self._failed(state, BrokerError(row.error_code, str(partition)), source)
                elif row.diverging_epoch.end_offset >= 0:
                    self._diverged(state, row.diverging_epoch)
                else:
                    self._arrived(state, row)

    def _arrived(self, state: Assigned, row: PartitionData) -> None:
        state.high_watermark = row.high_watermark
        if row.preferred_read_replica >= 0:
            self._prefer(state, row.preferred_read_replica)
        data = bytes(row.records) if row.records is not None else b""
        if not data:
            return
        chunk = Chunk.of(state.name, state.fetch_offset, row, data)
        try:
            end = chunk.end()
        except CorruptBatch as corrupt:
            state.error = corrupt
            return
        if end is None:
            state.error = BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"{state.name}: no whole batch was sent")
            return
        state.fetch_offset, state.fetch_epoch = end
        state.chunks.append(chunk)

    def _prefer(self, state: Assigned, replica: int) -> None:
        """The leader named a replica in our rack; like Kafka, use it for ``metadata.max.age.ms``."""
        now_ms = self._engine.now_ms
        state.prefer(replica, now_ms + self._engine.config.metadata_max_age_ms)
        if replica not in self._engine.metadata.brokers:
            self._try_later(state)

    def _diverged(self, state: Assigned, diverging: EpochEndOffset) -> None:
        """The log was truncated below what was fetched: continue where it differs."""
        if state.position <= diverging.end_offset:  # No truncated record was returned.
            state.move_to(state.position, min(state.position_epoch, diverging.epoch))
        elif self.config.auto_offset_reset == "none":
            state.move_to(state.position, state.position_epoch)
            state.error = LogTruncated(state.name, state.position, diverging.end_offset)
        else:
            state.move_to(diverging.end_offset, diverging.epoch)

    def _failed(self, state: Assigned, error: ClientError, source: int) -> None:
        code = error.code if isinstance(error, BrokerError) else None
        if state.preferred_replica == source:
            state.preferred_replica = None  # Ask the leader again, whatever the error.
            self._try_later(state)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE and state.has_bytes:
            self._try_later(state)  # Return the fetched records first.
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE and self._is_doubtful(state):
            self._try_later(state)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state)
        elif error.is_retriable:
            self._try_later(state)
        else:
            state.error = error

    def _try_later(self, state: Assigned) -> None:
        state.not_before_ms = self._engine.now_ms + self._engine.backoff_ms(1)
        self._engine.refresh_soon()

    def _is_doubtful(self, state: Assigned) -> bool:
        """Whether the metadata may be old: the record before the position was written under a later leader
        than the one asked. One that was replaced and does not know it lacks what was written since. If newer
        metadata do not come in time, the epoch belonged to a deleted topic of the same name."""
        info = self._engine.metadata.partition(state.name)
        if info is None or state.fetch_epoch <= info.leader_epoch:
            return False
        if state.doubted_until_ms is None:
            state.doubted_until_ms = self._engine.now_ms + self._engine.config.request_timeout_ms
        return self._engine.now_ms < state.doubted_until_ms

    def _out_of_range(self, state: Assigned) -> None:
        match self.config.auto_offset_reset:
            case "earliest":
                state.move_to(EARLIEST)
            case "latest":
                state.move_to(LATEST)
            case "none":
                state.error = OffsetOutOfRange(state.name, state.fetch_offset)

    # Positions that must be looked up

    def _locate(self, now_ms: int) -> None:
        """Ask each leader for the positions of its partitions that are not known yet."""
        by_leader: dict[int, list[Assigned]] = {}
        for state in self._assigned.values():
            if not state.is_sought(now_ms):
                continue
            leader = self._engine.metadata.leader_of(state.name)
            if leader is None:
                self._wait_for_a_leader(state)
            elif leader not in self._asked_for_offsets:
                by_leader.setdefault(leader, []).append(state)
        for leader, states in by_leader.items():
            self._asked_for_offsets.add(leader)
            self._engine.spawn(self._find(leader, states))

    def _wait_for_a_leader(self, state: Assigned) -> None:
        self._engine.refresh_soon()
        try:
            why_unknown(self._engine, [state.name])
        except ClientError as final:
            state.error = final
            self._engine.fire(self.data_came)

    def _find(self, leader: int, states: list[Assigned]) -> Operation[None]:
        wanted = {s.name: s.wanted_timestamp for s in states if s.wanted_timestamp is not None}
        try:
            rows = yield from ask_leader(leader, wanted, self.config.isolation_number)
        except ClientClosed:
            return
        except ClientError as error:
            for state in states:
                self._not_found(state, error)
        else:
            for state in states:
                row = rows.get(state.name)
                if state.wanted_timestamp != wanted[state.name]:
                    continue  # Moved since.
                if row is None or row.error_code:
                    code = ErrorCode.UNKNOWN_SERVER_ERROR if row is None else row.error_code
                    self._not_found(state, BrokerError(code, str(state.name)))
                else:
                    state.move_to(row.offset, row.leader_epoch)
        self._asked_for_offsets.discard(leader)
        self._engine.fire(self._wake)
        if self.has_data:
            self._engine.fire(self.data_came)

    def _not_found(self, state: Assigned, error: ClientError) -> None:
        """The lookup is repeated: after a pause, or after the caller got the error."""
        if error.is_retriable:
            self._try_later(state)
        else:
            state.error = error
