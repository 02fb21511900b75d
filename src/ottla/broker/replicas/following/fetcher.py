"""Following one leader: one connection and one Fetch in flight per leader and fetcher number.

The answer is appended and the next Fetch sent in the same call: that Fetch is the acknowledgement.
"""

import logging
import struct
from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from ottla.broker.peers.links import LinkLost, PeerLink, PeerLinks
from ottla.broker.replicas.following.apply import FollowerLogs
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.timers import Timer
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.validate import Refused
from ottla.replication.effects import (
    AppendFetched,
    BackOff,
    FindLeaderOffset,
    FollowerEffect,
    FollowLeader,
    RestartAt,
    StopFetching,
    TruncateTo,
)
from ottla.replication.events import EpochEndOffset, LeaderOffsetFound, PartitionFetched
from ottla.replication.fetch_plan import Answered, FetchPlan, PlannedFetch
from ottla.replication.follower import PartitionFollower
from ottla.storage.disk.port import Buffer
from ottla.wire.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

log = logging.getLogger(__name__)

FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 9
UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error)
"""What a mistake, or content that nobody thought of, raises: it stops one partition, not its fetcher."""


class Fetcher:
    """Follows some partitions of one leader."""

    def __init__(
        self,
        runtime: Runtime,
        links: PeerLinks,
        throttles: Throttles,
        logs: FollowerLogs,
        leader: BrokerId,
        number: int,
    ) -> None:
        self._runtime = runtime
        self._links = links
        self._throttles = throttles
        self._logs = logs
        self.leader = leader
        self.plan = FetchPlan()
        self.partitions: dict[TopicPartition, Partition] = {}
        self._backed_off: dict[TopicPartition, None] = {}
        self._topic_names: dict[TopicId, str] = {}
        self._has_left = False
        """A partition has left since the last request, and perhaps a topic with it."""
        self.is_in_flight = False
        self.is_held_back = False
        """More partitions are about to be added."""
        self._retry: Timer | None = None
        self._stopped: Counter[str] = Counter()
        client_id = f"broker-{runtime.identity.broker_id}-fetcher-{number}"
        self.link: PeerLink = links.get(leader, f"fetch-{number}", client_id=client_id)
        self.link.request_timeout_ms = runtime.config.replication.replica_socket_timeout_ms

    # --- what to follow -----------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        """Follow this partition; what its log must lose first goes first."""
        follower = partition.follower
        assert follower is not None, "only followers fetch"
        self.partitions[partition.name] = partition
        self._topic_names[follower.topic_id] = partition.name.topic
        try:
            self._perform(partition, follower, follower.started(), None, None)
        except LogDirectoryFailed as failed:
            partition.context.directory_failed(failed)
            return
        self._want(partition)
        self.send_soon()

    def remove(self, partition: Partition) -> None:
        """Stop following it; an answer that is under way is ignored."""
        if self.partitions.pop(partition.name, None) is not None:
            self.plan.drop(partition.name)
            self._backed_off.pop(partition.name, None)
            self._has_left = True

    def close(self) -> None:
        """Nothing is left to follow here."""
        if self._retry is not None:
            self._retry.cancel()
        self._links.drop(self.link, "nothing to fetch any more")

    def _want(self, partition: Partition) -> None:
        """Put the partition's next position on the plan, unless it must wait."""
        follower = partition.follower
        name = partition.name
        if follower is None or self.partitions.get(name) is not partition:
            return
        if not follower.may_fetch(self._runtime.clock.monotonic_ms()):
            self.plan.drop(name)
        elif follower.is_behind and self._throttles.follower_holds_back(partition):
            self.plan.drop(name)
            follower.back_off(self._runtime.clock.monotonic_ms() + self._backoff_ms)
            self._backed_off[name] = None
        else:
            self.plan.want(name, follower.next_fetch())

    # --- the conversation -----------------------------------------------------------------------------

    @property
    def _backoff_ms(self) -> int:
        return self._runtime.config.replication.replica_fetch_backoff_ms

    def send_soon(self) -> None:
        """Partitions are added in waves: the first Fetch carries all of a wave."""
        if not self.is_in_flight and not self.is_held_back:
            if self._retry is not None:
                self._retry.cancel()
            self._retry = self._runtime.timers.after(0, self._send)

    def _send(self) -> None:
        if self.is_in_flight:
            return
        if self._backed_off:
            self._end_back_offs()
        if self.plan.is_empty:
            self._wait_for_back_off()
            return
        if self._has_left:
            self._forget_topics()
        self.is_in_flight = True
        self.link.request(self._request(self.plan.next_request()), FETCH_VERSION, self._answered)

    def _forget_topics(self) -> None:
        """No answer is under way that could still name a topic whose last partition has left."""
        self._has_left = False
        self._topic_names = {
            follower.topic_id: name.topic
            for name, partition in self.partitions.items()
            if (follower := partition.follower) is not None
        }

    def _end_back_offs(self) -> None:
        now_ms = self._runtime.clock.monotonic_ms()
        for name in list(self._backed_off):
            partition = self.partitions.get(name)
            follower = partition.follower if partition is not None else None
            if partition is None or follower is None:
                del self._backed_off[name]
            elif follower.may_fetch(now_ms):
                del self._backed_off[name]
                self._want(partition)

    def _wait_for_back_off(self) -> None:
        if not self._backed_off or (self._retry is not None and self._retry.is_pending):
            return
        deadlines = [
            follower.retry_at_ms
            for name in self._backed_off
            if (follower := self.partitions[name].follower) is not None
        ]
        delay_ms = max(0, min(deadlines, default=0) - self._runtime.clock.monotonic_ms())
        self._retry = self._runtime.timers.after(delay_ms, self._send)

    def _request(self, planned: PlannedFetch) -> FetchRequest:
        settings = self._runtime.config.replication
        topics: dict[TopicId, FetchTopic] = {}
        for name, ask in planned.ask.items():
            topic = topics.get(ask.topic_id)
            if topic is None:
                topic = topics[ask.topic_id] = FetchTopic(
                    topic=name.topic, topic_id=ask.topic_id, partitions=[]
                )
            topic.partitions.append(
                FetchPartition(
                    partition=name.partition,
                    current_leader_epoch=ask.leader_epoch,
                    fetch_offset=ask.fetch_offset,
                    last_fetched_epoch=ask.last_fetched_epoch,
                    log_start_offset=ask.log_start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            )
        return FetchRequest(
            replica_state=ReplicaState(self._runtime.identity.broker_id, self._runtime.identity.broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=planned.session_id,
            session_epoch=planned.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=_forgotten(planned.forget),
        )

    def _answered(self, answer: FetchResponse | LinkLost) -> None:
        self.is_in_flight = False
        if isinstance(answer, LinkLost):
            self._lost(answer.reason)
            return
        named = self._named(answer)
        error = ErrorCode(answer.error_code)
        verdict = self.plan.answered(error, answer.session_id, named)
        if verdict is Answered.ACCEPTED:
            for name, data in named.items():
                self._take(name, data)
        elif verdict is Answered.REFUSED:
            log.info("fetch session refused leader=%d error=%s", self.leader, error.name)
        else:
            log.warning("fetch answer leaves partitions out leader=%d", self.leader)
            self._back_off_all("incomplete answer")
        self._tell_stopped()
        self._send()

    def _tell_stopped(self) -> None:
        """Partitions that must wait for the controller's next word, by the leader's reason."""
        for reason, count in self._stopped.items():
            log.info("fetching stopped leader=%d partitions=%d reason=%s", self.leader, count, reason)
        self._stopped.clear()

    def _named(self, answer: FetchResponse) -> dict[TopicPartition, PartitionData]:
        """The answer by partition name; ids of topics that are no longer followed are passed over."""
        return {
            TopicPartition(name, data.partition_index): data
            for topic in answer.responses
            if (name := self._topic_names.get(TopicId(topic.topic_id))) is not None
            for data in topic.partitions
        }

    def _take(self, name: TopicPartition, data: PartitionData) -> None:
        """One partition of the answer; ignore answers about a deleted topic of the same name."""
        partition = self.partitions.get(name)
        asked = self.plan.asked.get(name)
        follower = partition.follower if partition is not None else None
        if partition is None or asked is None or follower is None or asked.topic_id != follower.topic_id:
            return
        records = data.records
        fetched = PartitionFetched(
            asked.leader_epoch,
            asked.fetch_offset,
            data.error_code,
            data.high_watermark,
            data.log_start_offset,
            len(records) if records is not None else 0,
        )
        diverging = data.diverging_epoch
        if diverging.epoch >= 0:
            fetched.diverging = EpochEndOffset(LeaderEpoch(diverging.epoch), Offset(diverging.end_offset))
        try:
            self._perform(partition, follower, follower.fetched(fetched), fetched, records)
        except LogDirectoryFailed as failed:
            partition.context.directory_failed(failed)
            return
        except UNEXPECTED:
            log.exception("apply stopped partition=%s leader=%d", partition.name, self.leader)
            follower.stop()
        self._want(partition)

    # --- the follower's decisions -----------------------------------------------------------------------

    def _perform(
        self,
        partition: Partition,
        follower: PartitionFollower,
        effects: Iterable[FollowerEffect],
        fetched: PartitionFetched | None,
        records: Buffer | None,
    ) -> None:
        for effect in effects:
            match effect:
                case AppendFetched():
                    assert fetched is not None, "there was an answer"
                    assert records is not None, "and records came with it"
                    self._append(partition, follower, fetched, records)
                case FollowLeader():
                    self._logs.follow_leader(partition, effect)
                case TruncateTo():
                    self._logs.truncate(partition, self.leader, effect)
                case RestartAt():
                    self._logs.restart(partition, self.leader, effect)
                case FindLeaderOffset():
                    self._find_offset(partition, follower, effect)
                case BackOff():
                    self._back_off(partition, follower, effect.reason)
                case StopFetching():
                    log.debug("fetching stopped partition=%s reason=%s", partition.name, effect.reason)
                    self._stopped[effect.reason] += 1
                    follower.stop()
                case _:
                    assert_never(effect)

    def _append(
        self, partition: Partition, follower: PartitionFollower, fetched: PartitionFetched, records: Buffer
    ) -> None:
        outcome = self._logs.append(partition, self.leader, follower.leader_epoch, records)
        if isinstance(outcome, Refused):
            self._back_off(partition, follower, outcome.message or "refused")
        else:
            self._perform(partition, follower, follower.appended(fetched), fetched, None)

    def _back_off(self, partition: Partition, follower: PartitionFollower, reason: str) -> None:
        log.debug("fetching backs off partition=%s leader=%d reason=%s", partition.name, self.leader, reason)
        follower.back_off(self._runtime.clock.monotonic_ms() + self._backoff_ms)
        self._backed_off[partition.name] = None

    def _back_off_all(self, reason: str) -> None:
        for partition in self.partitions.values():
            if partition.follower is not None and partition.name in self.plan.wanted:
                partition.follower.back_off(self._runtime.clock.monotonic_ms() + self._backoff_ms)
                self._backed_off[partition.name] = None
                self.plan.drop(partition.name)
        log.info(
            "fetching backs off leader=%d partitions=%d reason=%s", self.leader, len(self.partitions), reason
        )

    def _lost(self, reason: str) -> None:
        self.plan.connection_lost()
        if self.partitions:
            self._back_off_all(reason)
            self._wait_for_back_off()

    # --- an offset the leader does not have ---------------------------------------------------------------

    def _find_offset(
        self, partition: Partition, follower: PartitionFollower, effect: FindLeaderOffset
    ) -> None:
        """On a connection of its own: behind a parked fetch it would wait."""
        request = ListOffsetsRequest(
            replica_id=self._runtime.identity.broker_id,
            topics=[
                ListOffsetsTopic(
                    name=partition.name.topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=partition.name.partition,
                            current_leader_epoch=follower.leader_epoch,
                            timestamp=EARLIEST if effect.earliest else LATEST,
                        )
                    ],
                )
            ],
        )
        link = self._links.get(self.leader, "follower-offsets", client_id=self.link.client_id)
        link.request(
            request,
            LIST_OFFSETS_VERSION,
            lambda answer: self._found_offset(partition, follower, effect.earliest, answer),
        )

    def _found_offset(
        self,
        partition: Partition,
        follower: PartitionFollower,
        earliest: bool,
        answer: ListOffsetsResponse | LinkLost,
    ) -> None:
        if partition.follower is not follower or self.partitions.get(partition.name) is not partition:
            return
        error, offset = ErrorCode.NETWORK_EXCEPTION, -1
        if not isinstance(answer, LinkLost) and answer.topics and answer.topics[0].partitions:
            found = answer.topics[0].partitions[0]
            error, offset = ErrorCode(found.error_code), found.offset
        event = LeaderOffsetFound(follower.leader_epoch, earliest, error, Offset(offset))
        try:
            self._perform(partition, follower, follower.found_leader_offset(event), None, None)
        except LogDirectoryFailed as failed:
            partition.context.directory_failed(failed)
            return
        self._want(partition)
        self.send_soon()


def _forgotten(forget: list[tuple[TopicPartition, TopicId]]) -> list[ForgottenTopic]:
    by_topic: dict[TopicId, tuple[str, list[int]]] = {}
    for name, topic_id in forget:
        by_topic.setdefault(topic_id, (name.topic, []))[1].append(name.partition)
    return [
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, (topic, indexes) in by_topic.items()
    ]
