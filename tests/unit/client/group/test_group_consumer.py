"""A member that is given partitions begins where the group stands, however hard that is to find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.config import ConsumerConfig
from ottla.client.errors import BrokerError
from ottla.client.group.changes import ShareChanges, ShareHistory
from ottla.client.group.config import MembershipConfig
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.subscriptions import decode_member, encode_share
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from ottla.wire.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.wire.apis.heartbeat import HeartbeatResponse
from ottla.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.apis.leave_group import LeaveGroupResponse
from ottla.wire.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.apis.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.wire.apis.sync_group import SyncGroupResponse
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster, FakeLog

ORDERS_0 = TopicPartition("orders", 0)
SHARE = frozenset({ORDERS_0})
FOR_EVER = 1_000
AUTO_COMMIT_MS = 20_000


class OneMember(FakeCluster):
    """A cluster whose coordinator, broker 1, takes a member in as a follower and gives it one partition."""

    def __init__(self, *strategies: str, **membership: Any) -> None:
        super().__init__()
        self.topic("orders", [1])
        self.logs[ORDERS_0].append(bytes(build_batch([Record(None, b"x")] * 10)))
        self.generation = 0
        self.leads_without_sharing = False
        self.script(ApiKey.FIND_COORDINATOR, *[self.coordinator] * FOR_EVER)
        self.script(ApiKey.JOIN_GROUP, *[self.joined] * FOR_EVER)
        self.script(ApiKey.SYNC_GROUP, *[self.synced] * FOR_EVER)
        self.script(ApiKey.HEARTBEAT, *[HeartbeatResponse()] * FOR_EVER)
        self.membership = MembershipConfig(
            partition_assignment_strategy=strategies,
            **{"enable_auto_commit": False, "session_timeout_ms": 6_000, **membership},
        )
        config = ConsumerConfig(auto_offset_reset="latest")
        self.consumer = GroupConsumerCore(self.engine, "g", ["orders"], config, self.membership)

    def coordinator(self, asked: Any) -> FindCoordinatorResponse:
        found = Coordinator(key="g", node_id=1, host="broker", port=9001)
        return FindCoordinatorResponse(node_id=1, host="broker", port=9001, coordinators=[found])

    def joined(self, asked: Any) -> JoinGroupResponse:
        self.generation += 1
        name = asked.protocols[0].name
        if self.leads_without_sharing:
            row = JoinGroupResponseMember(member_id="me", metadata=asked.protocols[0].metadata)
            return JoinGroupResponse(
                generation_id=self.generation,
                protocol_name=name,
                leader="me",
                member_id="me",
                members=[row],
                skip_assignment=True,
            )
        return JoinGroupResponse(
            generation_id=self.generation, protocol_name=name, leader="another", member_id="me"
        )

    def synced(self, asked: Any) -> SyncGroupResponse:
        return SyncGroupResponse(assignment=encode_share([ORDERS_0]))

    @property
    def position(self) -> int | None:
        at = self.consumer.fetching.positions().get(ORDERS_0)
        return at.offset if at is not None else None


def committed(offset: int, code: int = 0, group_code: int = 0, epoch: int = -1) -> OffsetFetchResponse:
    row = OffsetFetchResponsePartitions(
        partition_index=0, committed_offset=offset, committed_leader_epoch=epoch, error_code=code
    )
    topics = [OffsetFetchResponseTopics(name="orders", partitions=[row])]
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group_code)]
    )


@pytest.fixture(params=["range", "cooperative-sticky"])
def cluster(request: pytest.FixtureRequest) -> OneMember:
    return OneMember(request.param)


def wait_for(cluster: OneMember, is_so: Callable[[], bool]) -> None:
    cluster.run_until(is_so, ms_max=120_000)


def test_an_offset_in_an_open_transaction_is_waited_for(cluster: OneMember) -> None:
    unstable = committed(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    cluster.script(ApiKey.OFFSET_FETCH, unstable, unstable, committed(7))

    wait_for(cluster, lambda: cluster.position is not None)

    assert cluster.position == 7
    assert cluster.generation == 1


def test_a_transaction_that_stays_open_does_not_cost_the_membership(cluster: OneMember) -> None:
    unstable = committed(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    cluster.script(ApiKey.OFFSET_FETCH, *[unstable] * 40, committed(7))

    wait_for(cluster, lambda: cluster.position is not None)

    assert cluster.position == 7
    assert cluster.generation > 1, "it joined again, so that the group knows that it lives"


def test_a_share_whose_offsets_could_not_be_had_is_taken_over_the_next_time(cluster: OneMember) -> None:
    refused = committed(-1, ErrorCode.UNKNOWN_SERVER_ERROR)
    cluster.script(ApiKey.OFFSET_FETCH, refused, committed(7))

    wait_for(cluster, lambda: cluster.position is not None)

    assert cluster.position == 7
    assert cluster.consumer.membership.owned == {ORDERS_0}


def owned_as_told(cluster: OneMember, assignor: str) -> tuple[TopicPartition, ...]:
    """What the member said that it owns when it joined last."""
    request = cluster.requests(ApiKey.JOIN_GROUP)[-1][2]
    (blob,) = [row.metadata for row in request.protocols if row.name == assignor]
    return decode_member(assignor, JoinGroupResponseMember(member_id="me", metadata=blob)).owned


@pytest.mark.parametrize(
    ("strategies", "told"),
    [
        (("range", "cooperative-sticky"), {"range": (), "cooperative-sticky": ()}),
        (("sticky", "cooperative-sticky"), {"sticky": (ORDERS_0,), "cooperative-sticky": ()}),
        (("cooperative-sticky",), {"cooperative-sticky": (ORDERS_0,)}),
    ],
)
def test_what_an_eager_member_gave_up_before_it_joined_is_not_told_as_its_own(
    strategies: tuple[str, ...], told: dict[str, tuple[TopicPartition, ...]]
) -> None:
    cluster = OneMember(*strategies)
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position is not None)

    gather = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    cluster.scripted[ApiKey.HEARTBEAT].appendleft(gather)
    wait_for(cluster, lambda: cluster.generation == 2)

    assert {name: owned_as_told(cluster, name) for name in strategies} == told


def shared(*partitions: TopicPartition) -> DescribeGroupsResponse:
    """The group as its coordinator describes it: one member has all."""
    member = DescribedGroupMember(member_id="me", member_assignment=encode_share(partitions))
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", members=[member])])


def a_static_leader_that_came_back() -> OneMember:
    cluster = OneMember("range", group_instance_id="static")
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    cluster.script(ApiKey.DESCRIBE_GROUPS, *[shared(ORDERS_0)] * FOR_EVER)
    cluster.leads_without_sharing = True
    return cluster


def test_a_static_leader_that_came_back_still_notices_new_partitions() -> None:
    cluster = a_static_leader_that_came_back()
    wait_for(cluster, lambda: cluster.position is not None)
    assert cluster.requests(ApiKey.SYNC_GROUP)[-1][2].assignments == []
    cluster.pass_time(20_000, step_ms=100)
    assert cluster.generation == 1

    cluster.logs[TopicPartition("orders", 1)] = FakeLog(2)
    cluster.engine.refresh_soon()

    wait_for(cluster, lambda: cluster.generation == 2)


def test_a_static_leader_that_came_back_notices_partitions_that_were_added_while_it_was_away() -> None:
    """Found by the simulation: nobody read them, until something else made the group gather."""
    cluster = a_static_leader_that_came_back()
    cluster.logs[TopicPartition("orders", 1)] = FakeLog(2)
    wait_for(cluster, lambda: cluster.position is not None)

    wait_for(cluster, lambda: cluster.generation == 2)


def test_the_leader_epoch_is_committed_with_the_offset_and_told_by_who_takes_over(cluster: OneMember) -> None:
    cluster.logs[ORDERS_0].data.clear()
    cluster.logs[ORDERS_0].end_offset = 0
    cluster.logs[ORDERS_0].leader_epoch = 5
    cluster.logs[ORDERS_0].append(bytes(build_batch([Record(None, b"x")] * 10)))
    cluster.script(ApiKey.OFFSET_FETCH, committed(7, epoch=4))
    cluster.script(ApiKey.OFFSET_COMMIT, OffsetCommitResponse())
    wait_for(cluster, lambda: cluster.consumer.has_news)
    cluster.consumer.take(100)
    cluster.run(cluster.consumer.commit())

    (asked,) = cluster.requests(ApiKey.FETCH)[0][2].topics[0].partitions
    (kept,) = cluster.requests(ApiKey.OFFSET_COMMIT)[0][2].topics[0].partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (7, 4)
    assert (kept.committed_offset, kept.committed_leader_epoch) == (10, 5)


def test_a_program_that_does_not_poll_loses_its_share_until_it_polls_again(cluster: OneMember) -> None:
    cluster = OneMember(*cluster.membership.partition_assignment_strategy, max_poll_interval_ms=10_000)
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    cluster.script(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    wait_for(cluster, lambda: cluster.position is not None)
    member = cluster.consumer.membership

    for _ in range(4):
        cluster.pass_time(9_000)
        cluster.consumer.looks_for_news()
    assert member.owned == {ORDERS_0}

    cluster.pass_time(60_000, step_ms=100)
    assert len(cluster.requests(ApiKey.LEAVE_GROUP)) == 1
    assert (cluster.generation, member.owned, cluster.consumer.take(100)) == (1, frozenset(), {})

    wait_for(cluster, lambda: member.owned == {ORDERS_0})
    assert cluster.generation == 2


def test_a_sticky_member_whose_join_failed_still_tells_what_it_had() -> None:
    cluster = OneMember("sticky")
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position is not None)

    gather = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    cluster.scripted[ApiKey.HEARTBEAT].appendleft(gather)
    moved = JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id="me", leader="")
    cluster.scripted[ApiKey.JOIN_GROUP].appendleft(moved)
    wait_for(cluster, lambda: cluster.generation == 2)

    assert len(cluster.requests(ApiKey.JOIN_GROUP)) == 3
    assert owned_as_told(cluster, "sticky") == (ORDERS_0,)


def test_what_was_fetched_and_paused_stays_so_when_another_partition_comes_and_goes() -> None:
    cluster = OneMember("cooperative-sticky")
    orders_1 = TopicPartition("orders", 1)
    cluster.logs[orders_1] = FakeLog(1)
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.consumer.has_news)
    cluster.consumer.fetching.pause([ORDERS_0])
    asked = len(cluster.requests(ApiKey.FETCH))

    def gather_and_share(*share: TopicPartition) -> None:
        cluster.scripted[ApiKey.SYNC_GROUP].appendleft(SyncGroupResponse(assignment=encode_share(share)))
        gather = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        cluster.scripted[ApiKey.HEARTBEAT].appendleft(gather)
        wait_for(cluster, lambda: cluster.consumer.membership.owned == frozenset(share))

    gather_and_share(ORDERS_0, orders_1)
    gather_and_share(ORDERS_0)
    assert cluster.consumer.take(100) == {}, "it is paused still"
    cluster.consumer.fetching.pause([ORDERS_0], is_paused=False)

    assert [record.offset for record in cluster.consumer.take(100)[ORDERS_0]] == [7, 8, 9]
    named = [
        (row.partition, row.fetch_offset)
        for _, _, request in cluster.requests(ApiKey.FETCH)[asked:]
        for topic in request.topics
        for row in topic.partitions
    ]
    assert (0, 7) not in named, "what was here already was not fetched again"


def gather(cluster: OneMember, code: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS) -> None:
    cluster.scripted[ApiKey.HEARTBEAT].appendleft(HeartbeatResponse(error_code=code))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_program_is_told_of_a_share_that_was_lost_and_came_back_the_same(
    cluster: OneMember, code: ErrorCode
) -> None:
    cluster.script(ApiKey.OFFSET_FETCH, committed(2), *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position == 2)
    assert cluster.consumer.history.take() == ShareChanges(assigned=SHARE)

    gather(cluster, code)
    wait_for(cluster, lambda: cluster.position == 7)

    assert cluster.consumer.history.take() == ShareChanges(lost=SHARE, assigned=SHARE)
    assert cluster.consumer.history.take() == ShareChanges()


def test_an_eager_member_gives_up_and_gets_again_what_a_cooperative_one_keeps(cluster: OneMember) -> None:
    is_eager = cluster.membership.partition_assignment_strategy == ("range",)
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(2)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position == 2)
    cluster.consumer.history.take()

    gather(cluster)
    wait_for(cluster, lambda: cluster.generation == 2 and cluster.consumer.membership.is_stable)

    wanted = ShareChanges(revoked=SHARE, assigned=SHARE) if is_eager else ShareChanges()
    assert cluster.consumer.history.take() == wanted


def test_a_share_that_came_and_went_before_the_program_asked_is_no_news() -> None:
    history = ShareHistory()
    history.took_over(SHARE)
    history.gave_up(SHARE, is_lost=True)

    assert history.take() == ShareChanges()


def test_a_commit_that_is_tried_again_counts_for_its_own_generation_alone(cluster: OneMember) -> None:
    """Another member may have had the partition meanwhile, and committed more."""
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position is not None)
    moved = OffsetCommitResponsePartition(error_code=ErrorCode.NOT_COORDINATOR)
    topics = [OffsetCommitResponseTopic(name="orders", partitions=[moved])]
    cluster.script(ApiKey.OFFSET_COMMIT, OffsetCommitResponse(topics=topics), OffsetCommitResponse())

    commit = cluster.spawn(cluster.consumer.commit({ORDERS_0: 9}))
    cluster.run_until(lambda: len(cluster.requests(ApiKey.OFFSET_COMMIT)) == 1)
    cluster.consumer.membership.generation += 1
    wait_for(cluster, lambda: commit.is_done)

    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        commit.result()
    assert len(cluster.requests(ApiKey.OFFSET_COMMIT)) == 1


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_commit_that_was_not_written_in_time_is_tried_again(cluster: OneMember, code: ErrorCode) -> None:
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(7)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position is not None)
    late = OffsetCommitResponsePartition(error_code=code)
    topics = [OffsetCommitResponseTopic(name="orders", partitions=[late])]
    cluster.script(ApiKey.OFFSET_COMMIT, OffsetCommitResponse(topics=topics), OffsetCommitResponse())

    cluster.run(cluster.consumer.commit({ORDERS_0: 9}))

    assert len(cluster.requests(ApiKey.OFFSET_COMMIT)) == 2


def committed_offsets(cluster: OneMember) -> list[int]:
    """What the member has committed, in its order."""
    return [
        row.committed_offset
        for _, _, request in cluster.requests(ApiKey.OFFSET_COMMIT)
        for topic in request.topics
        for row in topic.partitions
    ]


@pytest.fixture
def committing(cluster: OneMember) -> OneMember:
    """A member that commits by itself and has been given the record at offset 2, and no more."""
    strategies = cluster.membership.partition_assignment_strategy
    member = OneMember(*strategies, enable_auto_commit=True, auto_commit_interval_ms=AUTO_COMMIT_MS)
    member.script(ApiKey.OFFSET_FETCH, *[committed(2)] * FOR_EVER)
    member.script(ApiKey.OFFSET_COMMIT, *[OffsetCommitResponse()] * FOR_EVER)
    member.script(ApiKey.LEAVE_GROUP, LeaveGroupResponse())
    wait_for(member, lambda: member.consumer.has_news)
    assert [record.offset for record in member.consumer.take(1)[ORDERS_0]] == [2]
    return member


def test_what_a_program_was_given_is_committed_when_it_asks_for_more(committing: OneMember) -> None:
    """Before, it may be at work on it still, and die."""
    committing.pass_time(AUTO_COMMIT_MS)
    assert committed_offsets(committing) == []

    committing.consumer.take(4)
    committing.pass_time(2 * AUTO_COMMIT_MS)

    assert committed_offsets(committing) == [3], "and once is enough"


def test_a_share_that_is_given_up_is_committed_as_far_as_it_was_worked_on(committing: OneMember) -> None:
    committing.consumer.take(4)
    committing.scripted[ApiKey.SYNC_GROUP].appendleft(SyncGroupResponse(assignment=encode_share([])))

    gather(committing)
    wait_for(committing, lambda: committing.generation > 1)

    assert committed_offsets(committing) == [3]


def test_a_share_that_was_lost_is_another_members_to_commit(committing: OneMember) -> None:
    committing.consumer.take(4)

    gather(committing, ErrorCode.UNKNOWN_MEMBER_ID)
    wait_for(committing, lambda: committing.generation == 2 and committing.position == 2)

    assert committed_offsets(committing) == []


def test_a_program_that_closes_its_consumer_is_done_with_all_it_was_given(committing: OneMember) -> None:
    committing.consumer.take(4)

    committing.run(committing.consumer.close())

    assert committed_offsets(committing) == [7]
