"""Who reads which partitions.

A reader is a session, or one request without a session. Partitions tell their readers when there may be
something new: a session looks only at those, however many it has on its list.
"""

from typing import TYPE_CHECKING, Protocol

from ottla.model.ids import NO_EPOCH, TopicId
from ottla.replication.events import EpochEndOffset
from ottla.storage.segment.log_slice import LogSlice
from ottla.wire.apis.fetch import FetchPartition

if TYPE_CHECKING:
    from ottla.broker.replicas.partition import Partition


class ParkedRead(Protocol):
    """A parked fetch."""

    def look_again(self) -> None:
        """Something changed: answer if it is enough."""

    def answer_now(self) -> None:
        """Do not wait any longer, for whatever reason."""


class FetchEntry:
    """One partition on a reader's list: what was asked, what was last told, and what the last look gave.

    A look's outcome is kept here, not in an object of its own: it is made for every fetch of every partition.
    """

    __slots__ = (
        "diverging",
        "error",
        "fetch_offset",
        "has_more",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "preferred_replica",
        "reader",
        "records",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, reader: "FetchReader", topic: str, topic_id: TopicId, asked: FetchPartition) -> None:
        self.reader = reader
        self.topic = topic
        self.topic_id = topic_id
        self.index = asked.partition
        self.partition: Partition | None = None
        """The hosted partition, once found; it knows this entry as a watcher then."""
        self.told_high_watermark = -1
        self.told_log_start_offset = -1
        self.error = 0
        self.records: LogSlice | None = None
        self.has_more = False
        """There are records to read, whether or not there was room for them."""
        self.diverging: EpochEndOffset | None = None
        self.preferred_replica = -1
        self.leader_epoch = epoch if (epoch := asked.current_leader_epoch) >= 0 else NO_EPOCH
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        self.max_bytes = asked.partition_max_bytes

    def ask(self, asked: FetchPartition) -> None:
        """Take the position of a request."""
        self.leader_epoch = epoch if (epoch := asked.current_leader_epoch) >= 0 else NO_EPOCH
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        self.max_bytes = asked.partition_max_bytes

    @property
    def is_news(self) -> bool:
        """Would an incremental answer name this partition, after the last look?"""
        if (
            self.error
            or self.records is not None
            or self.diverging is not None
            or self.preferred_replica >= 0
        ):
            return True
        if self.partition is None:
            return False
        log = self.partition.log
        return (
            log.high_watermark != self.told_high_watermark
            or log.log_start_offset != self.told_log_start_offset
        )

    def let_go(self) -> None:
        """The reader does not want this partition any more."""
        self.records = None
        if self.partition is not None:
            self.partition.watchers.pop(self, None)
            self.partition = None


class FetchReader:
    """Whoever fetches; ``dirty`` are the entries that may have something to tell."""

    __slots__ = ("dirty", "last_fetch_ms", "parked", "replica_epoch", "replica_id")

    def __init__(self, replica_id: int) -> None:
        self.replica_id = replica_id
        self.replica_epoch = -1
        self.dirty: dict[FetchEntry, None] = {}
        self.parked: ParkedRead | None = None
        self.last_fetch_ms = 0

    @property
    def is_incremental(self) -> bool:
        """Does an answer name only what is new?"""
        return False

    @property
    def is_empty(self) -> bool:
        """Is nothing on the list?"""
        return not self.dirty

    def finished(self) -> None:
        """A request was answered; without a session nothing is remembered of it."""
        for entry in self.dirty:
            entry.let_go()
        self.dirty = {}

    def registered_as(self, replica_epoch: int) -> None:
        """The follower's broker epoch, as its request says."""
        self.replica_epoch = replica_epoch

    def wake(self) -> None:
        """Something that a parked request waits for has happened."""
        if self.parked is not None:
            self.parked.look_again()
