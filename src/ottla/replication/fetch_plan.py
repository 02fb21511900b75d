"""Which partitions the next Fetch to a leader names: all at first, then only what changed.

The follower's half of KIP-227: the leader remembers the session's partitions, so a request lists
only those whose fetch position changed, and those to forget.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, TopicPartition
from ottla.model.spread import as_java_int, java_string_hash, place_of
from ottla.replication.follower import FetchFrom

FULL_EPOCH = 0
_EPOCH_MAX = 2**31 - 1


def fetcher_of(partition: TopicPartition, fetchers: int) -> int:
    """Which of the fetchers of a leader takes this partition: Kafka's own spread."""
    return place_of(as_java_int(31 * java_string_hash(partition.topic) + partition.partition), fetchers)


@dataclass(slots=True)
class PlannedFetch:
    """One Fetch: full when its session epoch is 0, otherwise only what changed."""

    session_id: int
    session_epoch: int
    ask: dict[TopicPartition, FetchFrom]
    forget: list[tuple[TopicPartition, TopicId]]

    @property
    def is_full(self) -> bool:
        return self.session_epoch == FULL_EPOCH


class Answered(Enum):
    """Whether an answer fits what was asked."""

    ACCEPTED = auto()
    REFUSED = auto()
    INCOMPLETE = auto()


class FetchPlan:
    """The session with one leader: what it was told, and what it must still be told."""

    __slots__ = ("_changed", "_forget", "_session_epoch", "_session_id", "asked", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[TopicPartition, FetchFrom] = {}
        """What should be fetched next, by partition."""
        self.asked: dict[TopicPartition, FetchFrom] = {}
        """What the leader has been told; an answer is about this."""
        self._changed: dict[TopicPartition, None] = {}
        self._forget: dict[TopicPartition, TopicId] = {}
        self._session_id = 0
        self._session_epoch = FULL_EPOCH

    def want(self, partition: TopicPartition, fetch: FetchFrom) -> None:
        """Fetch this partition from here on; the same position again changes nothing.

        A topic that was deleted and made anew has another id: its old one must be forgotten.
        """
        self.wanted[partition] = fetch
        told = self.asked.get(partition)
        if told is not None and told.topic_id != fetch.topic_id:
            self._forget[partition] = told.topic_id
        else:
            self._forget.pop(partition, None)
        if told == fetch:
            self._changed.pop(partition, None)
        else:
            self._changed[partition] = None

    def drop(self, partition: TopicPartition) -> None:
        """Fetch this partition no more, or not now."""
        self.wanted.pop(partition, None)
        self._changed.pop(partition, None)
        if (told := self.asked.get(partition)) is not None:
            self._forget[partition] = told.topic_id

    @property
    def is_empty(self) -> bool:
        return not self.wanted

    def next_request(self) -> PlannedFetch:
        """Make the next request; the leader counts as told from now on."""
        if self._session_epoch == FULL_EPOCH:
            ask = self.asked = dict(self.wanted)
            forget = []
        else:
            ask = {partition: self.wanted[partition] for partition in self._changed}
            forget = list(self._forget.items())
            for partition in self._forget:
                self.asked.pop(partition, None)
            self.asked.update(ask)
        self._changed = {}
        self._forget = {}
        return PlannedFetch(self._session_id, self._session_epoch, ask, forget)

    def answered(self, error: ErrorCode, session_id: int, partitions: Iterable[TopicPartition]) -> Answered:
        """Handle the answer to the last request; after an error the next one is full again."""
        if error is not ErrorCode.NONE:
            if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            self._session_epoch = FULL_EPOCH
            return Answered.REFUSED
        if self._session_epoch == FULL_EPOCH:
            if not self.asked.keys() <= set(partitions):
                self._session_id = 0
                return Answered.INCOMPLETE
            self._session_id = session_id
            self._session_epoch = 1 if session_id else FULL_EPOCH
        elif session_id == 0:
            self._session_id, self._session_epoch = 0, FULL_EPOCH
        else:
            self._session_epoch = 1 if self._session_epoch == _EPOCH_MAX else self._session_epoch + 1
        return Answered.ACCEPTED

    def connection_lost(self) -> None:
        """Nobody knows what the leader has heard: the next request is full, and closes the old
        session by naming it."""
        self._session_epoch = FULL_EPOCH
