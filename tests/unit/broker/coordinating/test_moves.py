"""A coordinator whose partition changes hands: what it says meanwhile, and what it knows afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.coordinating.loading import CHECK_AGAIN_MS
from ottla.config.areas import BrokerConfig
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.group.stored.records import offset_record
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import OFFSETS_TOPIC
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.delete_groups import DeleteGroupsRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.heartbeat import HeartbeatRequest
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.zookeeper.ops import ANY_VERSION, Data, GetData, SetData
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker
from support.bench.node_bench import a_config

GROUP = "readers"
LOAD_MS = 1_000
FIRST_JOIN_MS = 3_500
COMMIT_MS_MAX = 6_000


def a_commit(offset: int, group: str = GROUP) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    return OffsetCommitRequest(group_id=group, topics=topics)


class Coordinator(LedBroker):
    """Broker 1; it leads a topic that is read, and the test says who leads the offsets."""

    def __init__(self, config: BrokerConfig | None = None) -> None:
        super().__init__(config)
        self.lead(isr=(ME,))
        self.topic, self.topic_id = OFFSETS_TOPIC, b"offsets of all.."
        self.epoch = 0

    def lead_offsets(self, epoch: int | None = None, isr: tuple[int, ...] = (ME,)) -> None:
        self.tell_metadata(p0=ME)
        assert self.assigned_code(ME, isr=isr, epoch=epoch) == 0

    def commit(self, offset: int, version: int = 9, group: str = GROUP) -> ErrorCode:
        answer = self.ask(a_commit(offset, group), version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def commit_and_wait(self, offset: int) -> int:
        """A commit that waits for a follower; the connection to look for its answer."""
        connection = self.connect()
        self.send(connection, a_commit(offset), 9)
        return connection

    def commit_answered(self, connection: int) -> ErrorCode | None:
        answers = self.take_answers(connection, OffsetCommitResponse, 9)
        return ErrorCode(answers[0].topics[0].partitions[0].error_code) if answers else None

    def committed(self, *, require_stable: bool = False) -> int | ErrorCode:
        groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
        answer = self.ask(OffsetFetchRequest(groups=groups, require_stable=require_stable), 9).groups[0]
        if answer.error_code:
            return ErrorCode(answer.error_code)
        if not answer.topics:
            return -1
        row = answer.topics[0].partitions[0]
        return ErrorCode(row.error_code) if row.error_code else int(row.committed_offset)

    def join(self, host: str = "10.0.0.7", group: str = GROUP, session_ms: int = 10_000) -> int:
        """A join that waits; the connection to look for its answer."""
        connection = self.connect(host=host)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        self.send(connection, request, 3)
        return connection

    def joined(self, connection: int) -> Any:
        answers = self.take_answers(connection, JoinGroupResponse, 3)
        return answers[0] if answers else None


def test_offsets_are_there_after_leadership_flipped_in_the_middle_of_loads() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    assert [broker.commit(offset) for offset in range(1, 40)] == [ErrorCode.NONE] * 39

    said = []
    for _ in range(3):
        broker.follow(SECOND)
        said.append(broker.committed())
        broker.lead_offsets()
        said.append(broker.committed())
    broker.advance(LOAD_MS)

    assert said == [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
    assert broker.committed() == 39
    assert broker.commit(40) is ErrorCode.NONE


def test_members_stay_when_a_new_epoch_brings_no_new_leader() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    broker.commit(5)
    waiting = broker.join()

    broker.lead_offsets()

    assert broker.committed() == 5
    assert broker.joined(waiting) is None
    broker.advance(10_000)
    assert broker.joined(waiting).error_code == ErrorCode.NONE


@pytest.mark.parametrize("beats", [True, False])
def test_a_coordinator_that_stood_still_hears_its_members_before_it_puts_them_out(beats: bool) -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    waiting = broker.join()
    broker.advance(10_000)
    member = broker.joined(waiting)
    share = [SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"all")]
    sync = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=member.member_id, assignments=share)
    assert broker.ask(sync, 0).error_code == ErrorCode.NONE
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member.member_id)

    broker.clock.now_ms += 20_000  # The process is frozen; what it finds first are its own timers.
    broker.node.on_tick()
    broker.settle()
    if beats:
        assert broker.ask(beat, 0).error_code == ErrorCode.NONE
    broker.advance(1_000)

    assert broker.ask(beat, 0).error_code == (ErrorCode.NONE if beats else ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_load_goes_on_when_a_new_epoch_brings_no_new_leader() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.lead_offsets()

    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.advance(LOAD_MS)
    assert broker.committed() == -1


def test_groups_are_read_again_when_epochs_were_missed() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    broker.commit(5)
    waiting = broker.join()

    broker.lead_offsets(epoch=broker.epoch + 2)

    assert broker.joined(waiting).error_code == ErrorCode.NOT_COORDINATOR
    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.advance(LOAD_MS)
    assert broker.committed() == 5


def test_a_group_does_not_wait_for_the_deadline_of_a_more_patient_one() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    patient = broker.join(session_ms=60_000)
    broker.advance(FIRST_JOIN_MS)
    assert broker.joined(patient).error_code == ErrorCode.NONE

    waiting = broker.join(group="others")
    broker.advance(FIRST_JOIN_MS)

    assert broker.joined(waiting).error_code == ErrorCode.NONE


def taken_over_with_an_unfollowed_end() -> Coordinator:
    """Broker 1 wrote a commit of 5 that broker 2, though in sync, did not fetch; then it was elected anew."""
    broker = Coordinator()
    broker.lead_offsets(isr=(ME, SECOND))
    broker.advance(LOAD_MS)
    before = broker.commit_and_wait(5)
    broker.lead_offsets(epoch=broker.epoch + 2, isr=(ME, SECOND))
    assert broker.commit_answered(before) is ErrorCode.NOT_COORDINATOR
    broker.advance(LOAD_MS)
    return broker


def test_nothing_is_told_of_a_log_whose_end_the_next_leader_may_lack() -> None:
    """It would be another's to count the same generation, and the same offsets, once more."""
    broker = taken_over_with_an_unfollowed_end()
    end = broker.log.end_offset

    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.fetch_now(end - 1, replica=SECOND)
    broker.advance(LOAD_MS)
    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.fetch_now(end, replica=SECOND)
    broker.advance(CHECK_AGAIN_MS)

    assert broker.log.high_watermark == end
    assert broker.committed() == 5


def test_members_beat_on_while_the_end_of_the_log_is_not_yet_safe() -> None:
    broker = taken_over_with_an_unfollowed_end()

    beat = HeartbeatRequest(group_id=GROUP, generation_id=3, member_id="somebody")

    assert broker.ask(beat, 4).error_code == ErrorCode.NONE


def test_a_load_that_waits_for_a_follower_ends_with_the_leadership() -> None:
    broker = taken_over_with_an_unfollowed_end()

    broker.follow(SECOND)
    broker.advance(LOAD_MS)

    assert broker.committed() is ErrorCode.NOT_COORDINATOR


def test_a_coordinator_whose_session_ended_tells_nothing_until_it_is_told_what_it_leads() -> None:
    """Its successor may have taken commits since."""
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    broker.commit(5)

    broker.expire_session(new_session=99)

    assert broker.committed() is ErrorCode.NOT_COORDINATOR
    assert broker.commit(6) is ErrorCode.NOT_COORDINATOR
    assert broker.ask(FindCoordinatorRequest(key=GROUP), 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.lead_offsets(epoch=broker.epoch + 1)
    assert broker.committed() == 5
    assert broker.ask(FindCoordinatorRequest(key=GROUP), 3).node_id == ME


def test_offsets_are_told_though_too_few_replicas_are_in_sync_to_commit() -> None:
    """The watermark stands still then, but nobody else may lead."""
    broker = Coordinator(a_config(**{"min.insync.replicas": "2"}))
    broker.lead_offsets(isr=(ME, SECOND))
    broker.advance(LOAD_MS)
    broker.commit_and_wait(5)

    broker.lead_offsets(epoch=broker.epoch + 2, isr=(ME,))
    broker.advance(LOAD_MS)

    assert broker.log.high_watermark < broker.log.end_offset
    assert broker.committed() == 5


def test_a_commit_that_no_follower_takes_is_answered_in_the_end() -> None:
    broker = Coordinator()
    broker.lead_offsets(isr=(ME, SECOND))
    broker.advance(LOAD_MS)

    waiting = broker.commit_and_wait(5)
    broker.advance(COMMIT_MS_MAX)

    assert broker.commit_answered(waiting) is ErrorCode.REQUEST_TIMED_OUT


def test_a_deleted_group_does_not_come_back_though_too_few_replicas_are_in_sync() -> None:
    broker = Coordinator(a_config(**{"min.insync.replicas": "2"}))
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    key, value = offset_record(GROUP, TopicPartition(TOPIC, 0), CommittedOffset(9, -1, "", 0))
    broker.node.partitions.append_internal(
        TopicPartition(OFFSETS_TOPIC, 0), build_batch([Record(key, value)]), 1, 1_000, lambda _: None
    )
    broker.lead_offsets(epoch=broker.epoch + 2)
    broker.advance(LOAD_MS)
    assert broker.commit(10) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert broker.committed() == 9

    answer = broker.ask(DeleteGroupsRequest(groups_names=(GROUP,)), 2)
    broker.lead_offsets(epoch=broker.epoch + 2)
    broker.advance(LOAD_MS)

    assert [row.error_code for row in answer.results] == [ErrorCode.NONE]
    assert broker.committed() == -1


# -- offsets in transactions ---------------------------------------------------------------------


def taken_over_in_a_transaction(isr: tuple[int, ...] = (ME,)) -> Coordinator:
    """Another kind of coordinator wrote an offset of 9 in a transaction that is still open."""
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)
    broker.commit(5)
    broker.lead_offsets(isr=isr)
    key, value = offset_record(GROUP, TopicPartition(TOPIC, 0), CommittedOffset(9, -1, "", 0))
    batch = build_batch(
        [Record(key, value)], producer_id=77, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    broker.node.partitions.append_internal(TopicPartition(OFFSETS_TOPIC, 0), batch, 1, 1_000, lambda _: None)
    broker.lead_offsets(epoch=broker.epoch + 2, isr=isr)
    broker.advance(LOAD_MS)
    return broker


def a_marker(*, is_commit: bool) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=77,
        producer_epoch=0,
        transaction_result=is_commit,
        topics=[WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=(0,))],
    )
    return WriteTxnMarkersRequest(markers=[marker])


def end_transaction(broker: Coordinator, *, is_commit: bool) -> int:
    answer = broker.ask(a_marker(is_commit=is_commit), 1)
    return int(answer.markers[0].topics[0].partitions[0].error_code)


def test_an_open_transactions_offset_is_unstable_until_its_marker() -> None:
    broker = taken_over_in_a_transaction()

    stable = broker.committed(require_stable=True)
    assert stable is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert broker.committed() == 5
    assert end_transaction(broker, is_commit=True) == 0
    assert broker.committed(require_stable=True) == 9


def test_a_transaction_that_ends_when_the_log_is_read_and_not_yet_safe_counts() -> None:
    broker = taken_over_in_a_transaction(isr=(ME, SECOND))
    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.send(broker.connect(), a_marker(is_commit=True), 1)

    broker.fetch_now(broker.log.end_offset, replica=SECOND)
    assert broker.committed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.advance(CHECK_AGAIN_MS)

    assert broker.committed(require_stable=True) == 9


def test_an_aborted_transactions_offset_never_counted() -> None:
    broker = taken_over_in_a_transaction()

    assert end_transaction(broker, is_commit=False) == 0
    assert broker.committed(require_stable=True) == 5


def test_a_commit_outlives_the_marker_of_a_transaction_that_wrote_before() -> None:
    broker = taken_over_in_a_transaction()
    broker.commit(12)

    assert broker.committed() == 12
    assert broker.committed(require_stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert end_transaction(broker, is_commit=True) == 0
    assert broker.committed(require_stable=True) == 12


# -- offsets of old ------------------------------------------------------------------------------


def committed_of_old(broker: Coordinator, topic: str = TOPIC) -> tuple[int, int]:
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=(0,))]
    row = broker.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), 0).topics[0].partitions[0]
    return row.committed_offset, row.error_code


def test_version_0_keeps_its_offsets_in_zookeeper() -> None:
    broker = Coordinator()
    broker.lead_offsets()
    broker.advance(LOAD_MS)

    codes = [broker.commit(offset, version=0) for offset in (5, 6)]

    node = broker.zk(GetData(f"/consumers/{GROUP}/offsets/{TOPIC}/0"))
    assert codes == [ErrorCode.NONE] * 2
    assert isinstance(node, Data)
    assert node.data == b"6"
    assert committed_of_old(broker) == (6, ErrorCode.NONE)
    assert broker.committed() == -1, "the coordinator knows nothing of it"


def test_what_version_0_does_not_find_is_an_unknown_partition() -> None:
    broker = Coordinator()

    assert committed_of_old(broker) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert committed_of_old(broker, "nowhere") == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("content", [b"", b"many"])
def test_what_version_0_cannot_read_is_an_error_of_the_server(content: bytes) -> None:
    broker = Coordinator()
    broker.commit(5, version=0)
    broker.zk(SetData(f"/consumers/{GROUP}/offsets/{TOPIC}/0", content, ANY_VERSION))

    assert committed_of_old(broker) == (-1, ErrorCode.UNKNOWN_SERVER_ERROR)
