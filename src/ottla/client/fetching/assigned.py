"""One assigned partition: the reader's position, the fetch offset, and errors."""

from collections import deque
from collections.abc import Container

from ottla.client.errors import ClientError
from ottla.client.fetching.decoding import NO_EPOCH, Chunk, ChunkReader, Position
from ottla.model.ids import TopicPartition
from ottla.wire.apis.fetch import FetchRequest

CHUNKS_MAX = 2
"""How many fetched chunks of a partition may wait for the reader."""


class Assigned:
    """One assigned partition. ``position`` is the reader's, ``fetch_offset`` is ahead of it."""

    __slots__ = (
        "chunks",
        "doubted_until_ms",
        "error",
        "fetch",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "name",
        "not_before_ms",
        "position",
        "position_epoch",
        "preferred_replica",
        "preferred_until_ms",
        "reader",
        "wanted_timestamp",
    )

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.position = -1
        self.position_epoch = NO_EPOCH
        self.fetch_offset = -1
        self.fetch_epoch = NO_EPOCH
        """The leader epoch of the last batch that was fetched."""
        self.wanted_timestamp: int | None = None
        """The timestamp whose offset is to be looked up; ``None`` once the position is known."""
        self.chunks: deque[Chunk] = deque()
        self.reader: ChunkReader | None = None
        self.fetch: FetchRequest | None = None
        """The request in flight that asks for this partition."""
        self.high_watermark = -1
        self.not_before_ms = 0
        self.is_paused = False
        self.error: ClientError | None = None
        self.preferred_replica: int | None = None
        """The leader told us to fetch from this nearer replica, until ``preferred_until_ms``."""
        self.preferred_until_ms = 0
        self.doubted_until_ms: int | None = None
        """Until when a leader is not believed that has no such offset, though a later one had it."""

    def move_to(self, offset_or_time: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue from an offset (after a record of that epoch), or from ``EARLIEST`` or ``LATEST``."""
        self.chunks.clear()
        self.reader = None
        self.error = None
        self.fetch = None
        self.not_before_ms = 0
        self.preferred_replica = None
        self.doubted_until_ms = None
        is_offset = offset_or_time >= 0
        self.wanted_timestamp = None if is_offset else offset_or_time
        self.position = self.fetch_offset = offset_or_time if is_offset else -1
        self.position_epoch = self.fetch_epoch = leader_epoch

    def reached(self, offset: int, leader_epoch: int) -> None:
        """The reader has reached an offset."""
        self.position, self.position_epoch = offset, leader_epoch

    def known_position(self) -> Position | None:
        """The reader's position; ``None`` while it is not known."""
        return Position(self.position, self.position_epoch) if self.position >= 0 else None

    def prefer(self, replica: int, until_ms: int) -> None:
        """Fetch from this broker for a time: the leader says that it is nearer."""
        self.preferred_replica, self.preferred_until_ms = replica, until_ms

    def source(self, leader: int | None, brokers: Container[int], now_ms: int) -> int | None:
        """The broker to fetch from: the preferred replica while that is valid and its address is known."""
        preferred = self.preferred_replica
        if preferred is not None and now_ms < self.preferred_until_ms and preferred in brokers:
            return preferred
        return leader

    @property
    def has_bytes(self) -> bool:
        """Whether fetched bytes are to be read before an error is raised."""
        return self.reader is not None or bool(self.chunks)

    def is_sought(self, now_ms: int) -> bool:
        """Whether its position must be looked up now."""
        return self.wanted_timestamp is not None and self.error is None and now_ms >= self.not_before_ms

    def is_fetchable(self, now_ms: int) -> bool:
        return (
            self.fetch_offset >= 0
            and not self.is_paused
            and self.error is None
            and len(self.chunks) < CHUNKS_MAX
            and now_ms >= self.not_before_ms
        )
