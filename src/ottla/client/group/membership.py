"""A member of a group: it joins, assigns partitions if it leads, sends heartbeats, commits. Sans-IO."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from ottla.client.admin.asking import find_coordinator
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import BrokerLane, Operation, Signal, Task, ask, wait_for
from ottla.client.errors import BrokerError, ClientClosed, ClientError, ConnectionLost, UnsupportedByBroker
from ottla.client.fetching.decoding import Position
from ottla.client.group.assignors import ASSIGNORS
from ottla.client.group.assignors.protocol import NO_GENERATION
from ottla.client.group.config import MembershipConfig
from ottla.client.group.racks import racks_of
from ottla.client.group.subscriptions import (
    Share,
    decode_member,
    decode_share,
    encode_share,
    encode_subscription,
)
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

CONSUMER = "consumer"
NOBODY = ""
JOIN_GRACE_MS = 5_000
LEAVE_MS_MAX = 3_000
_MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_COMMIT_AGAIN = _MOVED | {ErrorCode.REQUEST_TIMED_OUT}
_FATAL = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


class Reader(Protocol):
    """Reads the partitions that this member owns."""

    def give_up(self, partitions: frozenset[TopicPartition], *, is_lost: bool) -> Operation[None]:
        """Stop reading these; their offsets can still be committed, unless they are lost."""

    def take_over(self, partitions: frozenset[TopicPartition], coordinator: BrokerLane) -> Operation[None]:
        """Begin to read these too, from the offsets that this coordinator returns."""


class Membership:
    """One member. ``changed`` fires with every new share and every error."""

    def __init__(
        self,
        engine: Engine,
        group: str,
        topics: Iterable[str],
        config: MembershipConfig,
        reader: Reader,
        rack: str = "",
    ) -> None:
        self.group = group
        self.topics = tuple(dict.fromkeys(topics))
        self.config = config
        self.member_id = NOBODY
        self.generation = NO_GENERATION
        self.owned: frozenset[TopicPartition] = frozenset()
        self._last_share = Share()
        self.is_leader = False
        self.is_stable = False
        self.error: ClientError | None = None
        """The fatal error that ended the membership."""
        self.changed = Signal()
        self._engine = engine
        self._reader = reader
        self._assignors = [ASSIGNORS[name] for name in config.partition_assignment_strategy]
        self._is_cooperative = all(assignor.is_cooperative for assignor in self._assignors)
        self._coordinator: BrokerLane | None = None
        self._rack = rack
        self._counts: dict[str, int] = {}
        self._racks: dict[TopicPartition, frozenset[str]] = {}
        """The racks of partitions when this leader assigned them; empty if it has no rack itself."""
        self._wake = Signal()
        self._polled = Signal()
        self._polled_at_ms = engine.now_ms
        self._is_leaving = False
        engine.want_topics(*self.topics)
        self._task: Task[None] = engine.spawn(self._live())

    @property
    def has_left(self) -> bool:
        return self._is_leaving

    # -- what the consumer does ----------------------------------------------------------------

    def leave(self) -> Operation[None]:
        """End the membership; a static member stays in the group until its session ends."""
        if not self._is_leaving:
            self._is_leaving = True
            self._engine.fire(self._wake)
            self._engine.cancel(self._task)
            if self.owned:
                yield from self._drop(self.owned)
            yield from self._say_goodbye()
            self._forget()

    def polled(self) -> None:
        """The program polls: it is alive."""
        self._polled_at_ms = self._engine.now_ms
        self._engine.fire(self._polled)

    def commit(self, offsets: Mapping[TopicPartition, Position]) -> Operation[None]:
        """Commit for this generation. Retriable errors are retried for a time, but never in a later
        generation: others may have read on and committed meanwhile."""
        generation = self.generation
        deadline_ms = self._engine.now_ms + self._engine.config.default_api_timeout_ms
        attempts = 0
        while True:
            if self.generation != generation:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION, "the group has rebalanced")
            if foreign := offsets.keys() - self.owned:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION, f"{min(foreign)} is no longer assigned")
            try:
                yield from self._commit_once(offsets)
                return
            except ClientError as error:
                may_pass = not isinstance(error, BrokerError) or error.code in _COMMIT_AGAIN
                if isinstance(error, ClientClosed | UnsupportedByBroker) or not may_pass:
                    raise
                if self._engine.now_ms >= deadline_ms:
                    raise
            self._coordinator = None
            attempts += 1
            yield from self._engine.pause(attempts, deadline_ms)

    def _commit_once(self, offsets: Mapping[TopicPartition, Position]) -> Operation[None]:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for tp, position in offsets.items():
            topic = topics.setdefault(tp.topic, OffsetCommitRequestTopic(name=tp.topic, partitions=[]))
            row = OffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
            )
            topic.partitions.append(row)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
            topics=list(topics.values()),
        )
        lane = yield from self._find()
        response = yield from ask(
            BrokerLane(lane.broker, f"{lane.lane}/commits"), request, OffsetCommitResponse
        )
        for answer in response.topics:
            for refused in answer.partitions:
                if refused.error_code:
                    raise BrokerError(refused.error_code, f"{answer.name}-{refused.partition_index}")

    # -- joining and staying -------------------------------------------------------------------

    def _live(self) -> Operation[None]:
        failures = 0
        while not self._is_leaving:
            try:
                yield from self._join()
                failures = 0
                yield from self._stay()
            except ClientClosed:
                return
            except ClientError as error:
                if not (yield from self._recover(error)):
                    return
                failures += 1
                yield from self._engine.pause(failures, self._engine.now_ms + self.config.session_timeout_ms)

    def _recover(self, error: ClientError) -> Operation[bool]:
        """Handle an error of the membership; whether the member may join again."""
        self.is_stable = False
        code = error.code if isinstance(error, BrokerError) else None
        if code in _FATAL or (code is None and not error.is_retriable):
            self.error = error
            yield from self._lose()
            self._engine.fire(self.changed)
            return False
        if code is None or code in _MOVED:
            self._coordinator = None
            self._engine.refresh_soon()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = NOBODY
            yield from self._lose()
        elif code == ErrorCode.ILLEGAL_GENERATION:
            yield from self._lose()
        return True

    def _lose(self) -> Operation[None]:
        """The group rebalanced without this member: its partitions may belong to others."""
        self.generation = NO_GENERATION
        if self.owned:
            lost, self.owned = self.owned, frozenset()
            yield from self._reader.give_up(lost, is_lost=True)
            self._engine.fire(self.changed)

    def _forget(self) -> None:
        self.member_id, self.generation, self.owned = NOBODY, NO_GENERATION, frozenset()
        self.is_stable = self.is_leader = False

    def _drop(self, partitions: frozenset[TopicPartition]) -> Operation[None]:
        """Give partitions up while they are owned, so that their offsets can be committed."""
        yield from self._reader.give_up(partitions, is_lost=False)
        self.owned -= partitions
        self._engine.fire(self.changed)

    # -- finding, joining, syncing -------------------------------------------------------------

    def _find(self) -> Operation[BrokerLane]:
        if self._coordinator is not None:
            return self._coordinator
        if not self._engine.metadata.version:
            deadline_ms = self._engine.now_ms + self._engine.config.request_timeout_ms
            if not (yield from self._engine.refresh(deadline_ms)):
                raise self._engine.metadata_error or ConnectionLost("no broker has answered")
        found = yield from find_coordinator(self.group)
        if found.node_id not in self._engine.metadata.brokers:
            self._engine.refresh_soon()
            raise ConnectionLost(f"the address of broker {found.node_id} is not known")
        self._coordinator = BrokerLane(found.node_id, f"group {self.group} {id(self)}")
        return self._coordinator

    def _join(self) -> Operation[None]:
        """Join the next generation and read its share.

        One coordinator answers all requests. A second lookup might find a replaced coordinator that does not
        know it yet: it cannot form a generation, but would return old offsets.
        """
        self.is_stable = False
        if self.owned and not self._is_cooperative:
            yield from self._drop(self.owned)
        lane = yield from self._find()
        joined = yield from self._join_until_in(lane)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        self.is_leader = joined.leader == joined.member_id
        shares: list[SyncGroupRequestAssignment] = []
        if self.is_leader:
            shares = yield from self._share_out(lane, joined)
        share = yield from self._sync(lane, joined, shares)
        gone, more = self.owned - share, share - self.owned
        if gone:
            yield from self._drop(gone)
        if more:
            yield from self._reader.take_over(more, lane)
        self.owned = share
        self._last_share = Share(share, self.generation)
        self.is_stable = not (gone and self._is_cooperative)
        self._engine.fire(self.changed)

    def _join_until_in(self, lane: BrokerLane) -> Operation[JoinGroupResponse]:
        while True:
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.config.session_timeout_ms,
                rebalance_timeout_ms=self.config.max_poll_interval_ms,
                member_id=self.member_id,
                group_instance_id=self.config.group_instance_id,
                protocol_type=CONSUMER,
                protocols=[
                    JoinGroupRequestProtocol(
                        name=each.name,
                        metadata=encode_subscription(
                            each.name,
                            self.topics,
                            Share(self.owned, self.generation),
                            self._last_share,
                            self._rack,
                        ),
                    )
                    for each in self._assignors
                ],
            )
            timeout_ms = self.config.max_poll_interval_ms + JOIN_GRACE_MS
            joined = yield from ask(lane, request, JoinGroupResponse, timeout_ms=timeout_ms)
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
                continue
            if joined.error_code:
                raise BrokerError(joined.error_code)
            return joined

    def _share_out(
        self, lane: BrokerLane, joined: JoinGroupResponse
    ) -> Operation[list[SyncGroupRequestAssignment]]:
        """As leader, assign the partitions of all topics that members want, by the chosen assignor.

        A static leader that comes back to a group which keeps its assignment (KIP-814) only watches the
        topics again; partitions added while it was away count as a change.
        """
        name = joined.protocol_name or ""
        if name not in ASSIGNORS:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, name)
        members = [decode_member(name, row) for row in joined.members]
        topics = sorted({topic for member in members for topic in member.topics})
        self._engine.want_topics(*topics)
        yield from self._engine.refresh(self._engine.now_ms + self._engine.config.request_timeout_ms)
        self._counts = self._counts_of(topics)
        racks = racks_of(self._engine.metadata, topics)
        self._racks = racks if self._rack else {}
        if joined.skip_assignment:
            self._counts = yield from self._counts_shared(lane, topics)
            return []
        shares = ASSIGNORS[name].assign(self._counts, members, racks)
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_share(share))
            for member_id, share in shares.items()
        ]

    def _counts_of(self, topics: Iterable[str]) -> dict[str, int]:
        known = {name: self._engine.metadata.topic(name) for name in topics}
        return {name: len(info.partitions) if info is not None else 0 for name, info in known.items()}

    def _counts_shared(self, lane: BrokerLane, topics: Iterable[str]) -> Operation[dict[str, int]]:
        """How many partitions of each topic are assigned: those added since are not, and count as new."""
        request = DescribeGroupsRequest(groups=(self.group,))
        answer = yield from ask(lane, request, DescribeGroupsResponse)
        counts = dict.fromkeys(topics, 0)
        for row in answer.groups:
            if row.error_code:
                raise BrokerError(row.error_code)
            for member in row.members:
                for partition in _share_or_nothing(bytes(member.member_assignment)):
                    if partition.topic in counts:
                        counts[partition.topic] += 1
        return counts

    def _sync(
        self, lane: BrokerLane, joined: JoinGroupResponse, shares: list[SyncGroupRequestAssignment]
    ) -> Operation[frozenset[TopicPartition]]:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=CONSUMER,
            protocol_name=joined.protocol_name,
            assignments=shares,
        )
        timeout_ms = self.config.max_poll_interval_ms + JOIN_GRACE_MS
        synced = yield from ask(lane, request, SyncGroupResponse, timeout_ms=timeout_ms)
        if synced.error_code:
            raise BrokerError(synced.error_code)
        try:
            return decode_share(bytes(synced.assignment))
        except MalformedRequest as malformed:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(malformed)) from malformed

    # -- staying -------------------------------------------------------------------------------

    def _stay(self) -> Operation[None]:
        """Send heartbeats until the group rebalances, the topics that this leader assigned have changed, or
        the program has not polled for too long."""
        while self.is_stable and not self._is_leaving:
            wait_ms = min(self.config.heartbeat_interval_ms, max(0, self._poll_time_left_ms()) + 1)
            yield from wait_for(self._wake, wait_ms)
            if self._poll_time_left_ms() < 0:
                yield from self._step_out()
                return
            if self.is_leader and self._topics_have_changed():
                return
            request = HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.config.group_instance_id,
            )
            try:
                answer = yield from ask((yield from self._find()), request, HeartbeatResponse)
                code = answer.error_code
            except ClientError as error:
                if isinstance(error, ClientClosed) or not error.is_retriable:
                    raise
                code = ErrorCode.NOT_COORDINATOR
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if code in _MOVED:
                self._coordinator = None
                self._engine.refresh_soon()
            elif code:
                raise BrokerError(code)

    def _topics_have_changed(self) -> bool:
        """Whether partitions were added, or have a new rack; a broker that is down has not moved."""
        racks = racks_of(self._engine.metadata, self._counts) if self._racks else {}
        return self._counts_of(self._counts) != self._counts or any(
            not racks[tp] <= before for tp, before in self._racks.items() if tp in racks
        )

    def _poll_time_left_ms(self) -> int:
        return self._polled_at_ms + self.config.max_poll_interval_ms - self._engine.now_ms

    def _step_out(self) -> Operation[None]:
        """The program has not polled for too long: leave the group until it polls again."""
        yield from self._lose()
        yield from self._say_goodbye()
        self._forget()
        self._engine.fire(self.changed)
        while self._poll_time_left_ms() < 0:
            yield from wait_for(self._polled)

    def _say_goodbye(self) -> Operation[None]:
        """Send LeaveGroup; a static member stays until its session ends."""
        if not self.member_id or self.config.group_instance_id is not None or self._coordinator is None:
            return
        request = LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.member_id)])
        lane = BrokerLane(self._coordinator.broker, f"{self._coordinator.lane}/commits")
        try:
            yield from ask(lane, request, LeaveGroupResponse, timeout_ms=LEAVE_MS_MAX)
        except ClientError:
            return


def _share_or_nothing(blob: bytes) -> frozenset[TopicPartition]:
    try:
        return decode_share(blob)
    except MalformedRequest:
        return frozenset()
