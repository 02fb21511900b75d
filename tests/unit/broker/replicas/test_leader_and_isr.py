"""LeaderAndIsr and StopReplica: every fence, and what obeying means."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from support.bench.led_broker import CONTROLLER_EPOCH, ME, SECOND, THIRD, TOPIC, TOPIC_ID, LedBroker, a_batch

OTHER_ID = bytes(range(1, 17))


def test_a_new_leader_notes_where_its_epoch_begins() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a", "b"))

    broker.lead(isr=(ME,))

    assert [tuple(entry) for entry in broker.log.epochs.entries()] == [(1, 0), (2, 2)]


def test_the_answer_echoes_the_partition_under_its_topic_id() -> None:
    broker = LedBroker()
    broker.tell_metadata(p0=ME)

    response = broker.assign(ME)

    assert response.error_code == 0
    assert [topic.topic_id for topic in response.topics] == [TOPIC_ID]
    assert [(each.partition_index, each.error_code) for each in response.topics[0].partition_errors] == [
        (0, 0)
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"controller_epoch": CONTROLLER_EPOCH - 1}, ErrorCode.STALE_CONTROLLER_EPOCH),
        ({"broker_epoch": 0}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_an_old_controller_and_a_message_to_our_past_are_refused_as_a_whole(
    settings: dict[str, int], expected: ErrorCode
) -> None:
    broker = LedBroker().lead()

    response = broker.assign(SECOND, **settings)

    assert response.error_code == expected
    assert response.topics[0].partition_errors[0].error_code == expected
    assert broker.partition.leader is not None


def test_a_broker_epoch_above_ours_is_accepted() -> None:
    broker = LedBroker().lead()

    assert broker.assign(ME, broker_epoch=10**9).error_code == 0


@pytest.mark.parametrize("epoch", [5, 4])
def test_an_equal_or_lower_leader_epoch_is_stale(epoch: int) -> None:
    broker = LedBroker().lead(epoch=5)

    assert broker.assigned_code(SECOND, epoch=epoch) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.partition.leader is not None


def test_another_topic_id_is_inconsistent() -> None:
    broker = LedBroker().lead()

    assert broker.assigned_code(ME, topic_id=OTHER_ID) == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_broker_that_is_no_replica_refuses() -> None:
    broker = LedBroker()

    code = broker.assigned_code(ME, replicas=(SECOND, THIRD))

    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.partition is None


def test_an_older_partition_epoch_is_passed_over_even_with_a_higher_leader_epoch() -> None:
    broker = LedBroker().lead(epoch=5, partition_epoch=9)

    assert broker.assigned_code(SECOND, epoch=6, partition_epoch=8) == 0
    assert broker.partition.leader_epoch == 5
    assert broker.partition.leader is not None


@pytest.mark.parametrize("leader", [-1, 8])
def test_following_an_unknown_leader_only_makes_the_log(leader: int) -> None:
    """KAFKA-1647: the log must be there, so that its high watermark is checkpointed."""
    broker = LedBroker()

    assert broker.assigned_code(leader) == 0
    assert broker.partition.leader_epoch == -1
    assert broker.partition.follower is None
    assert broker.log is not None


def test_a_topic_without_an_id_gets_it_later() -> None:
    broker = LedBroker()
    broker.tell_metadata(p0=ME)
    assert broker.assigned_code(ME, topic_id=bytes(16)) == 0
    assert broker.log.topic_id is None

    assert broker.assigned_code(ME, epoch=broker.epoch) == 0

    assert broker.log.topic_id == TOPIC_ID


def test_versions_without_topic_ids_are_understood() -> None:
    broker = LedBroker()
    state = LeaderAndIsrPartitionState(
        topic_name=TOPIC, partition_index=0, leader=ME, leader_epoch=1, isr=(ME,), replicas=(ME,)
    )
    request = LeaderAndIsrRequest(
        controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH, ungrouped_partition_states=[state]
    )

    response = broker.ask(request, 1)

    assert [(each.topic_name, each.error_code) for each in response.partition_errors] == [(TOPIC, 0)]
    assert broker.partition.leader is not None


def test_of_a_partition_that_is_named_twice_the_last_word_counts() -> None:
    broker = LedBroker()
    states = [
        LeaderAndIsrPartitionState(
            partition_index=0,
            leader=ME,
            leader_epoch=1,
            isr=isr,
            partition_epoch=1,
            replicas=(ME, SECOND, THIRD),
            is_new=True,
        )
        for isr in ((ME,), (ME, SECOND))
    ]
    topic = LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=states)
    request = LeaderAndIsrRequest(
        controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH, topic_states=[topic]
    )

    response = broker.ask(request, 7)

    assert [each.error_code for each in response.topics[0].partition_errors] == [0]
    assert broker.partition.leader.isr.committed == (ME, SECOND)


def test_settings_of_a_new_topic_are_read_before_its_log_is_made() -> None:
    broker = LedBroker()
    broker.zk_is_held = True
    state = LeaderAndIsrPartitionState(
        partition_index=0, leader=ME, leader_epoch=1, isr=(ME,), replicas=(ME,), is_new=True
    )
    request = LeaderAndIsrRequest(
        controller_id=SECOND,
        controller_epoch=CONTROLLER_EPOCH,
        topic_states=[LeaderAndIsrTopicState(topic_name="new", topic_id=OTHER_ID, partition_states=[state])],
    )
    broker.send(broker.connect(), request, 7)
    assert broker.node.partitions.find("new", 0) is None

    for submitted in broker.held:
        broker.answer(submitted)
    broker.settle()

    assert broker.node.partitions.find("new", 0) is not None


def stop(broker: LedBroker, *, epoch: int, delete: bool, controller_epoch: int = CONTROLLER_EPOCH) -> int:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=epoch, delete_partition=delete)
    request = StopReplicaRequest(
        controller_id=SECOND,
        controller_epoch=controller_epoch,
        topic_states=[StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])],
    )
    response = broker.ask(request, 4)
    code: int = response.error_code or response.partition_errors[0].error_code
    return code


def test_a_deleted_replica_leaves_and_its_directory_is_renamed() -> None:
    broker = LedBroker().lead()
    waiting = broker.produce(a_batch("a"), acks=-1)

    assert stop(broker, epoch=-2, delete=True) == 0

    assert broker.partition is None
    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    names = [entry.name for entry in broker.disk.list_directory("/data") if entry.is_directory]
    assert len(names) == 1
    assert names[0].startswith("orders-0.")
    assert names[0].endswith("-delete")


@pytest.mark.parametrize(
    ("epoch", "expected"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, 0), (-1, 0), (-2, 0)]
)
def test_stopping_is_fenced_by_the_leader_epoch(epoch: int, expected: int) -> None:
    broker = LedBroker().follow(epoch=5)

    assert stop(broker, epoch=epoch, delete=False) == expected


def test_a_stopped_follower_fetches_no_more_but_keeps_its_log() -> None:
    broker = LedBroker().follow()

    stop(broker, epoch=broker.epoch, delete=False)

    assert broker.node.fetchers._by_place == {}
    assert broker.log is not None


def test_deleting_what_is_not_hosted_succeeds() -> None:
    assert stop(LedBroker(), epoch=-2, delete=True) == 0


def test_an_old_controllers_stop_is_refused() -> None:
    broker = LedBroker().lead()

    code = stop(broker, epoch=-2, delete=True, controller_epoch=CONTROLLER_EPOCH - 1)

    assert code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.partition is not None


def test_a_leader_whose_partition_went_to_others_while_it_was_away_leads_no_more() -> None:
    """Seeds 1130523223 and 1130523445: nobody stopped it, and its readers waited there for ever."""
    broker = LedBroker().lead()
    waiting = broker.produce(a_batch("a"), acks=-1)
    broker.epoch += 1

    broker.tell_metadata(replicas=(SECOND, THIRD), p0=SECOND)

    assert broker.partition is None
    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.fetch_now(0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replica_that_was_taken_away_keeps_its_log_and_may_be_given_back() -> None:
    broker = LedBroker().lead()
    broker.produce_now(a_batch("a"), acks=1)
    broker.epoch += 1
    broker.tell_metadata(replicas=(SECOND, THIRD), p0=SECOND)

    broker.lead()

    assert broker.log.end_offset == 1


def test_metadata_of_the_own_epoch_do_not_take_a_replica_away() -> None:
    """The controller speaks of an assignment that the order under way may be ahead of."""
    broker = LedBroker().lead()

    broker.tell_metadata(replicas=(SECOND, THIRD), p0=SECOND)

    assert broker.partition is not None


def test_a_topic_made_anew_gets_a_new_log() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("old"))
    stop(broker, epoch=-2, delete=True)

    assert broker.assigned_code(ME, epoch=0, topic_id=OTHER_ID, isr=(ME,)) == 0

    assert (broker.log.end_offset, broker.log.topic_id) == (0, OTHER_ID)


@pytest.mark.parametrize(
    ("topic", "partition"),
    [("x" * 250, 0), ("../elsewhere", 0), ("..", 0), ("", 0), ("orders", -1), ("x" * 249, 10**7)],
)
def test_a_name_that_no_directory_can_have_is_refused_and_no_disk_is_blamed(
    topic: str, partition: int
) -> None:
    broker = LedBroker()
    broker.topic = topic

    code = broker.assigned_code(ME, partition=partition)

    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not broker.node.log_dirs.logs
    assert broker.node.log_dirs.live_paths
