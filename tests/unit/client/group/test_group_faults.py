"""A member of a group when things go wrong: commits that fail, ids that are void, shares in two rounds."""

from __future__ import annotations

import pytest

from ottla.client.errors import BrokerError
from ottla.client.group.subscriptions import encode_share
from ottla.model.errors import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.find_coordinator import FindCoordinatorResponse
from ottla.wire.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.apis.sync_group import SyncGroupResponse
from ottla.wire.keys import ApiKey
from unit.client.group.test_group_consumer import (
    AUTO_COMMIT_MS,
    FOR_EVER,
    ORDERS_0,
    OneMember,
    committed,
    committed_offsets,
    gather,
    wait_for,
)
from unit.client.group.test_group_leader import Led


def a_member(strategy: str = "range", offset: int = 7, **membership: object) -> OneMember:
    """A member that has its share."""
    cluster = OneMember(strategy, **membership)
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(offset)] * FOR_EVER)
    wait_for(cluster, lambda: cluster.position is not None)
    return cluster


def commit_answer(code: ErrorCode) -> OffsetCommitResponse:
    rows = [OffsetCommitResponsePartition(error_code=code)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="orders", partitions=rows)])


def test_a_commit_that_failed_is_sent_when_it_is_asked_for_again() -> None:
    cluster = a_member()
    refused = commit_answer(ErrorCode.REBALANCE_IN_PROGRESS)
    cluster.script(ApiKey.OFFSET_COMMIT, refused, OffsetCommitResponse())

    with pytest.raises(BrokerError, match="REBALANCE_IN_PROGRESS"):
        cluster.run(cluster.consumer.commit({ORDERS_0: 9}))
    cluster.run(cluster.consumer.commit({ORDERS_0: 9}))

    assert committed_offsets(cluster) == [9, 9]


def test_commits_go_on_after_one_that_failed_by_itself() -> None:
    cluster = a_member(offset=2, enable_auto_commit=True, auto_commit_interval_ms=AUTO_COMMIT_MS)
    cluster.script(
        ApiKey.OFFSET_COMMIT, commit_answer(ErrorCode.REBALANCE_IN_PROGRESS), OffsetCommitResponse()
    )
    wait_for(cluster, lambda: cluster.consumer.has_news)
    cluster.consumer.take(1)
    cluster.consumer.take(1)

    cluster.pass_time(3 * AUTO_COMMIT_MS, step_ms=100)

    assert committed_offsets(cluster) == [3, 3]


def test_a_commit_is_tried_again_where_the_coordinator_is_now() -> None:
    cluster = a_member()
    cluster.scripted[ApiKey.FIND_COORDINATOR].appendleft(
        FindCoordinatorResponse(node_id=2, host="broker", port=9002)
    )
    cluster.script(ApiKey.OFFSET_COMMIT, commit_answer(ErrorCode.NOT_COORDINATOR), OffsetCommitResponse())

    cluster.run(cluster.consumer.commit({ORDERS_0: 9}))

    assert [broker for broker, _, _ in cluster.requests(ApiKey.OFFSET_COMMIT)] == [1, 2]


def test_what_was_committed_of_a_share_that_was_lost_is_not_taken_for_known() -> None:
    """Its offsets were deleted meanwhile: the same commit is news again."""
    cluster = a_member()
    cluster.script(ApiKey.OFFSET_COMMIT, *[OffsetCommitResponse()] * 2)
    cluster.run(cluster.consumer.commit({ORDERS_0: 9}))
    cluster.scripted[ApiKey.OFFSET_FETCH].clear()
    cluster.script(ApiKey.OFFSET_FETCH, *[committed(-1)] * FOR_EVER)

    gather(cluster, ErrorCode.UNKNOWN_MEMBER_ID)
    wait_for(cluster, lambda: cluster.generation == 2 and cluster.consumer.membership.owned == {ORDERS_0})
    cluster.run(cluster.consumer.commit({ORDERS_0: 9}))

    assert committed_offsets(cluster) == [9, 9]


def test_whoever_is_unknown_to_the_group_joins_under_a_new_id() -> None:
    cluster = a_member()

    gather(cluster, ErrorCode.UNKNOWN_MEMBER_ID)
    wait_for(cluster, lambda: cluster.generation == 2)

    assert [asked.member_id for _, _, asked in cluster.requests(ApiKey.JOIN_GROUP)] == ["", ""]


def test_a_static_member_whose_place_another_took_ends_and_says_why() -> None:
    cluster = a_member(group_instance_id="static")

    gather(cluster, ErrorCode.FENCED_INSTANCE_ID)
    wait_for(cluster, lambda: cluster.consumer.membership.error is not None)
    cluster.pass_time(10_000)

    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
        cluster.consumer.take(100)
    assert cluster.generation == 1
    assert cluster.consumer.fetching.assignment == []


def test_a_cooperative_member_that_gave_something_up_joins_again_at_once() -> None:
    """Only then can another be given what it gave up."""
    cluster = a_member("cooperative-sticky")
    cluster.scripted[ApiKey.SYNC_GROUP].appendleft(SyncGroupResponse(assignment=encode_share([])))

    gather(cluster)
    wait_for(cluster, lambda: cluster.generation == 3)

    heartbeats_between = len(cluster.requests(ApiKey.HEARTBEAT))
    assert heartbeats_between == 1, "nobody had to call it"


def test_offsets_are_asked_of_the_coordinator_that_gave_the_share() -> None:
    """One that was replaced and does not know it may be found meanwhile: it tells offsets of old."""
    cluster = a_member()
    cluster.scripted[ApiKey.FIND_COORDINATOR].extendleft(
        [FindCoordinatorResponse(node_id=2, host="broker", port=9002)] * 3
    )

    gather(cluster)
    wait_for(cluster, lambda: cluster.generation == 2)

    assert {broker for broker, _, _ in cluster.requests(ApiKey.SYNC_GROUP)} == {1}
    assert {broker for broker, _, _ in cluster.requests(ApiKey.OFFSET_FETCH)} == {1}


def test_stable_offsets_are_asked_for() -> None:
    cluster = a_member()

    assert all(asked.require_stable for _, _, asked in cluster.requests(ApiKey.OFFSET_FETCH))


def test_the_epoch_of_a_record_in_the_middle_of_a_batch_is_committed_with_it() -> None:
    """With an older one its log would seem cut, and be read again from where that ended."""
    cluster = OneMember("range")
    cluster.logs[ORDERS_0].data.clear()
    cluster.logs[ORDERS_0].end_offset = 0
    cluster.logs[ORDERS_0].leader_epoch = 5
    cluster.logs[ORDERS_0].append(bytes(build_batch([Record(None, b"x")] * 10)))
    cluster.script(ApiKey.OFFSET_FETCH, committed(2, epoch=4))
    cluster.script(ApiKey.OFFSET_COMMIT, OffsetCommitResponse())
    wait_for(cluster, lambda: cluster.consumer.has_news)
    cluster.consumer.take(1)

    cluster.run(cluster.consumer.commit())

    (kept,) = cluster.requests(ApiKey.OFFSET_COMMIT)[0][2].topics[0].partitions
    assert (kept.committed_offset, kept.committed_leader_epoch) == (3, 5)


def test_partitions_that_were_added_are_shared_out_once() -> None:
    cluster = Led()
    cluster.gather()

    cluster.topic("orders", [1, 2, 1])
    cluster.engine.refresh_soon()
    cluster.run_until(lambda: cluster.generation == 2, ms_max=60_000)
    cluster.gather()
    cluster.pass_time(20_000, step_ms=100)

    assert {partition.partition for partition in cluster.shares()["me"]} == {0, 1, 2}
    assert cluster.generation == 2
