"""Fetch sessions: readers that are remembered between their requests (KIP-227)."""

from random import Random

from ottla.broker.replicas.readers import FetchEntry, FetchReader
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.wire.apis.fetch import FetchRequest, FetchTopic, ForgottenTopic

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1
EVICTION_MS = 120_000
"""A session that was idle for so long makes room for any other."""
ORPHAN_MS = 600_000
"""A session that nobody used for so long is given up even where there is room: its reader has died."""
TOPIC_IDS_SINCE = 13


class FetchSession(FetchReader):
    """A reader that is remembered between its requests."""

    __slots__ = ("created_ms", "entries", "epoch", "id", "uses_topic_ids", "was_full")

    def __init__(self, session_id: int, replica_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        super().__init__(replica_id)
        self.id = session_id
        self.epoch = 1
        """The epoch that the next request must name."""
        self.uses_topic_ids = uses_topic_ids
        self.entries: dict[tuple[str | TopicId, int], FetchEntry] = {}
        self.created_ms = self.last_fetch_ms = now_ms
        self.was_full = True

    @property
    def is_incremental(self) -> bool:
        return not self.was_full

    @property
    def is_empty(self) -> bool:
        return not self.entries

    @property
    def is_privileged(self) -> bool:
        """Followers come before consumers when sessions are short."""
        return self.replica_id >= 0

    def registered_as(self, replica_epoch: int) -> None:
        """A follower that registered anew says so for all of its partitions: a leader that knew the
        old registration alone could propose no ISR with it."""
        if replica_epoch != self.replica_epoch:
            self.replica_epoch = replica_epoch
            self.dirty.update(dict.fromkeys(self.entries.values()))

    def finished(self) -> None:
        """A request was answered: all are known now, and remembered."""
        self.was_full = False

    def update(self, topics: list[FetchTopic], forgotten: list[ForgottenTopic]) -> None:
        """Take in what an incremental request changed."""
        for topic in topics:
            key = TopicId(topic.topic_id) if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                entry = self.entries.get((key, asked.partition))
                if entry is None:
                    entry = FetchEntry(self, topic.topic, TopicId(topic.topic_id), asked)
                    self.entries[key, asked.partition] = entry
                else:
                    entry.ask(asked)
                self.dirty[entry] = None
        for gone in forgotten:
            key = TopicId(gone.topic_id) if self.uses_topic_ids else gone.topic
            for index in gone.partitions:
                forgotten_entry = self.entries.pop((key, index), None)
                if forgotten_entry is not None:
                    self.dirty.pop(forgotten_entry, None)
                    forgotten_entry.let_go()

    def close(self) -> None:
        """The session ends: its partitions forget it."""
        for entry in self.entries.values():
            entry.let_go()
        self.entries = {}
        self.dirty = {}


def one_request(body: FetchRequest, replica_id: int) -> FetchReader:
    """A reader for one request without a session; of a partition named twice the last word counts."""
    reader = FetchReader(replica_id)
    entries: dict[tuple[str, bytes, int], FetchEntry] = {}
    for topic in body.topics:
        name, topic_id = topic.topic, TopicId(topic.topic_id)
        for asked in topic.partitions:
            entries[name, topic_id, asked.partition] = FetchEntry(reader, name, topic_id, asked)
    reader.dirty = dict.fromkeys(entries.values())
    return reader


class FetchSessions:
    """The sessions of this broker, at most so many; followers push out consumers, if need be."""

    __slots__ = ("_random", "_sessions", "slots_max")

    def __init__(self, slots_max: int, random: Random) -> None:
        self.slots_max = slots_max
        self._random = random
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        """How many partitions all sessions remember."""
        return sum(len(session.entries) for session in self._sessions.values())

    def open(self, body: FetchRequest, version: int, replica_id: int, now_ms: int) -> FetchReader | ErrorCode:
        """The reader of a request: a session old or new, or one for this request only."""
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if body.session_id:
                self.close(body.session_id)
            if body.session_epoch == FINAL_EPOCH:
                return one_request(body, replica_id)
            return self._begin(body, version, replica_id, now_ms)
        session = self._sessions.get(body.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != body.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != (version >= TOPIC_IDS_SINCE):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(body.topics, body.forgotten_topics_data)
        if not session.entries:
            self.close(session.id)
            return FetchReader(replica_id)
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        self._sessions[session.id] = self._sessions.pop(session.id)
        return session

    def close(self, session_id: int) -> None:
        """End a session, if it is there."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            if session.parked is not None:
                session.parked.answer_now()
            session.close()

    def _begin(self, body: FetchRequest, version: int, replica_id: int, now_ms: int) -> FetchReader:
        self._close_orphans(now_ms)
        size = sum(len(topic.partitions) for topic in body.topics)
        if len(self._sessions) >= self.slots_max and not self._make_room(replica_id >= 0, size, now_ms):
            return one_request(body, replica_id)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._random.randrange(1, 2**31)
        session = FetchSession(session_id, replica_id, version >= TOPIC_IDS_SINCE, now_ms)
        session.update(body.topics, [])
        self._sessions[session_id] = session
        return session

    def _close_orphans(self, now_ms: int) -> None:
        while (oldest := next(iter(self._sessions.values()), None)) is not None:
            if oldest.parked is not None or now_ms - oldest.last_fetch_ms <= ORPHAN_MS:
                return
            self.close(oldest.id)

    def _make_room(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        """Evict the session idle longest, if long enough; else one that matters less than the new."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        victim: FetchSession | None = None
        if now_ms - oldest.last_fetch_ms > EVICTION_MS:
            victim = oldest
        else:
            least = min(
                self._sessions.values(), key=lambda each: (each.is_privileged, len(each.entries), each.id)
            )
            is_old = now_ms - least.created_ms > EVICTION_MS
            if (is_privileged and not least.is_privileged) or (
                is_old and is_privileged == least.is_privileged and size > len(least.entries)
            ):
                victim = least
        if victim is None:
            return False
        self.close(victim.id)
        return True
