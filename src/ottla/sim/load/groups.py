"""A member of a consumer group in the simulated world: it joins, commits, hangs, leaves and dies."""

import json
from collections.abc import Callable

from ottla.client.engine.tasks import Ask
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.sim.load.clients import Client, Surroundings
from ottla.sim.load.scripts import Script, ask
from ottla.sim.truth.groups import GroupTruth, Known, Who
from ottla.sim.world import MILLISECOND, SECOND
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.heartbeat import HeartbeatRequest
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.apis.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

FIND_VERSION = 2
JOIN_VERSIONS = (5, 9)
"""From version 9 on a static leader that comes back is told to skip the assignment."""
SYNC_VERSION = 3
HEARTBEAT_VERSION = 3
COMMIT_VERSION = 7
FETCH_VERSION = 5
STABLE_FETCH_VERSION = 7
LEAVE_VERSION = 3
SESSION_MS = 3_000
REBALANCE_MS = 4_000
BEAT_US = 900 * MILLISECOND


class Member(Client):
    """One process. Its committed offsets are counters: each commit is higher than the one before."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        truth: GroupTruth,
        partitions: Callable[[], list[TopicPartition]],
        instance_id: str | None,
        on_fenced: Callable[["Member"], None],
    ) -> None:
        super().__init__(around, name)
        self.truth = truth
        self.partitions = partitions
        self.instance_id = instance_id
        self.owned: dict[TopicPartition, int] = {}
        """What this member believes to own, and the last offset it knows of."""
        self.generation = -1
        self.sleeps_until_us = 0
        """Until then it hangs: not even heartbeats are sent."""
        self.wants_to_leave = False
        self._wants_stable = self.world.happens(0.5)
        self._join_version = self.world.chance.choice(JOIN_VERSIONS)
        self._on_fenced = on_fenced
        self._coordinator = -1
        self._member_id = ""
        self._script = self._live()

    def start(self) -> None:
        self.scripts.play(self._script)

    def die(self) -> None:
        """End at once, without a word."""
        self.is_stopped = True
        self._script.close()
        for rpc in self._rpcs.values():
            rpc.close()

    @property
    def is_settled(self) -> bool:
        return self.generation >= 0 and self.generation == self.truth.generation

    @property
    def _who(self) -> Who:
        return Who(self._member_id, self.instance_id)

    def _known(self) -> Known:
        return self.truth.known(self._who)

    # -- life --------------------------------------------------------------------------------

    def _live(self) -> Script:
        while not self.is_stopped:
            if self._coordinator < 0:
                yield from self._find()
            elif (yield from self._join()):
                yield from self._work()
            yield self.scripts.wait(self.backoff_us())

    def _find(self) -> Script:
        request = FindCoordinatorRequest(key=self.truth.group, key_type=0)
        response = yield ask(self.any_broker(), request, FIND_VERSION)
        if response is not None and response.error_code == ErrorCode.NONE:
            self._coordinator = response.node_id

    def _failed(self, code: int) -> None:
        """What an error means for this member's coordinator and id."""
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.is_stopped = True
            self._on_fenced(self)
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        elif code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self._coordinator = -1

    # -- joining -----------------------------------------------------------------------------

    def _join(self) -> Script:
        """Enter the next generation; whether this member is in one."""
        joined = self._known()
        response = yield self._join_request()
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            response = yield self._join_request()
        code = response.error_code if response is not None else -1
        if code != ErrorCode.NONE:
            self._failed(code)
            return False
        self._member_id = response.member_id
        self.truth.joined(self._who, response.generation_id, self._coordinator, joined)
        return (yield from self._sync(response, joined))

    def _sync(self, joined: JoinGroupResponse, known: Known) -> Script:
        """Ask for this member's share of a generation, and bring all shares if it leads."""
        is_sharing = joined.leader == self._member_id and not joined.skip_assignment
        request = SyncGroupRequest(
            group_id=self.truth.group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            assignments=self._assign([each.member_id for each in joined.members]) if is_sharing else [],
        )
        asked = self._known()
        answer = yield ask(self._coordinator, request, SYNC_VERSION)
        code = answer.error_code if answer is not None else -1
        if code != ErrorCode.NONE:
            self._failed(code)
            return False
        mine = [TopicPartition(*each) for each in json.loads(answer.assignment or b"[]")]
        self.generation = joined.generation_id
        self.truth.owned(self.generation, self._who, mine, self._coordinator, known, asked)
        return (yield from self._fetch_offsets(mine))

    def _join_request(self) -> Ask:
        request = JoinGroupRequest(
            group_id=self.truth.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            protocol_type="sim",
            protocols=[JoinGroupRequestProtocol(name="in-turn", metadata=b"")],
        )
        return ask(self._coordinator, request, self._join_version)

    def _assign(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        """The leader's share-out: partitions in turn to the members."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in sorted(members)}
        for index, partition in enumerate(self.partitions()):
            if shares:
                shares[sorted(shares)[index % len(shares)]].append(partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=json.dumps(share).encode())
            for member, share in shares.items()
        ]

    def _fetch_offsets(self, mine: list[TopicPartition]) -> Script:
        """Learn how far its partitions were read; one that wants stable offsets asks until they are."""
        self.owned = {}
        code: int = ErrorCode.NONE if not mine else ErrorCode.UNSTABLE_OFFSET_COMMIT
        while code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            code = yield from self._ask_offsets(mine)
            if code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                yield self.scripts.wait(self.backoff_us())
                beaten = yield from self._beat()
                code = code if beaten == ErrorCode.NONE else beaten
        if code != ErrorCode.NONE:
            self._failed(code)
        return code == ErrorCode.NONE

    def _ask_offsets(self, mine: list[TopicPartition]) -> Script:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=tuple(p.partition for p in rows))
            for name, rows in _by_topic(mine).items()
        ]
        is_stable = self._wants_stable
        request = OffsetFetchRequest(group_id=self.truth.group, topics=topics, require_stable=is_stable)
        version = STABLE_FETCH_VERSION if is_stable else FETCH_VERSION
        asked = self._known()
        response = yield ask(self._coordinator, request, version)
        if response is None or response.error_code != ErrorCode.NONE:
            return response.error_code if response is not None else -1
        for topic in response.topics:
            for row in topic.partitions:
                if row.error_code != ErrorCode.NONE:
                    self.world.note(b"%d" % row.error_code)
                    return row.error_code
                partition, offset = TopicPartition(topic.name, row.partition_index), row.committed_offset
                self.truth.fetched(self.generation, self._who, partition, offset, asked, is_stable=is_stable)
                self.owned[partition] = max(0, offset)
        return ErrorCode.NONE

    # -- working -----------------------------------------------------------------------------

    def _work(self) -> Script:
        """Beat and commit until the group says that this is over."""
        while not self.is_stopped:
            yield self.scripts.wait(self.backoff_us(BEAT_US))
            if self.sleeps_until_us > self.world.now_us:
                yield self.scripts.wait(self.sleeps_until_us - self.world.now_us)
                yield from self._commit()  # as if nothing had happened: the group must refuse what is too old
            if self.wants_to_leave:
                yield from self._leave()
                return
            code = (yield from self._commit()) if self.owned else (yield from self._beat())
            if code != ErrorCode.NONE:
                self._failed(code)
                return

    def _beat(self) -> Script:
        request = HeartbeatRequest(
            group_id=self.truth.group,
            generation_id=self.generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
        )
        asked = self._known()
        response = yield ask(self._coordinator, request, HEARTBEAT_VERSION)
        code = response.error_code if response is not None else -1
        if code == ErrorCode.NONE:
            self.truth.heard(self._who, self._coordinator, asked)
        return code

    def _commit(self) -> Script:
        """Commit the next number for each partition; a commit is a heartbeat too."""
        values = {partition: offset + 1 for partition, offset in self.owned.items()}
        if not values:
            return ErrorCode.NONE
        asked = self._known()
        response = yield ask(self._coordinator, self._commit_request(values), COMMIT_VERSION)
        if response is None:
            return -1
        worst: int = ErrorCode.NONE
        for topic in response.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                if row.error_code != ErrorCode.NONE:
                    worst = row.error_code
                    continue
                value = values[partition]
                self.truth.committed(self.generation, self._who, partition, value, self._coordinator, asked)
                self.owned[partition] = value
        if worst == ErrorCode.NONE:
            return (yield from self._beat())
        return worst

    def _commit_request(self, values: dict[TopicPartition, int]) -> OffsetCommitRequest:
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=p.partition, committed_offset=values[p])
                    for p in rows
                ],
            )
            for name, rows in _by_topic(list(values)).items()
        ]
        return OffsetCommitRequest(
            group_id=self.truth.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self._member_id,
            group_instance_id=self.instance_id,
            topics=topics,
        )

    def _leave(self) -> Script:
        self.wants_to_leave = False
        leaving = MemberIdentity(member_id=self._member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.truth.group, members=[leaving])
        yield ask(self._coordinator, request, LEAVE_VERSION)
        self._member_id = ""
        self.generation = -1
        yield self.scripts.wait(SECOND)


def _by_topic(partitions: list[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics
