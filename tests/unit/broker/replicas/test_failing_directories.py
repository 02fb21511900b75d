"""A log directory that fails takes only its own partitions along."""

import pytest

from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.zookeeper.ops import Create, Lost
from support.bench.led_broker import ME, SECOND, LedBroker, a_batch
from support.bench.node_bench import a_config


def two_directories() -> LedBroker:
    """Partitions 0 and 1 lie in different directories."""
    broker = LedBroker(a_config(log_dirs="/one,/two"))
    broker.tell_metadata(p0=ME, p1=ME)
    for partition in (0, 1):
        broker.assign(ME, isr=(ME,), partition=partition, epoch=1)
    logs = [broker.node.partitions.find("orders", partition).log for partition in (0, 1)]  # type: ignore[union-attr]
    assert logs[0].directory != logs[1].directory
    return broker


def fail(broker: LedBroker, partition: int) -> None:
    found = broker.node.partitions.find("orders", partition)
    assert found is not None
    broker.node.partitions.directory_failed(LogDirectoryFailed(found.log.directory, "input/output error"))
    broker.settle()


def test_its_partitions_answer_that_their_storage_failed_and_the_others_go_on() -> None:
    broker = two_directories()

    fail(broker, 0)

    assert broker.produce_now(a_batch("a"), partition=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.fetch_now(0, partitions=(0,), epoch=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.produce_now(a_batch("a"), partition=1).error_code == 0


def test_the_controller_hears_of_it_through_zookeeper() -> None:
    broker = two_directories()

    fail(broker, 0)

    notes = [op for op in broker.zk_log if isinstance(op, Create) and "log_dir_event" in op.path]
    assert len(notes) >= 1
    assert notes[-1].sequential


def test_the_controller_hears_of_it_though_the_connection_to_zookeeper_ends_meanwhile() -> None:
    broker = two_directories()
    broker.zk_is_held = True
    fail(broker, 0)
    [note] = [held for held in broker.held if "log_dir_event" in getattr(held.operation, "path", "")]
    broker.zk_log.clear()

    broker.node.on_zk_result(note.token, Lost(maybe_applied=True))
    broker.zk_is_held = False
    broker.settle()
    broker.advance(1_000)

    assert note.operation in broker.zk_log


def test_the_controller_is_told_that_the_replica_is_offline() -> None:
    broker = two_directories()
    fail(broker, 0)

    assert broker.assigned_code(ME, partition=0, epoch=2) == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_old_partition_is_not_made_anew_while_it_may_lie_on_the_dead_disk() -> None:
    """It would pass for a replica that lost nothing."""
    broker = two_directories()
    fail(broker, 0)
    broker.tell_metadata(p2=ME, p3=ME)

    assert broker.assigned_code(ME, partition=2, epoch=1, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.assigned_code(ME, partition=3, epoch=1, is_new=True) == 0


def test_waiting_producers_hear_so() -> None:
    broker = LedBroker(a_config(log_dirs="/one,/two")).lead(isr=(ME, SECOND))
    waiting = broker.produce(a_batch("a"), acks=-1)

    fail(broker, 0)

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_without_any_directory_left_the_broker_ends() -> None:
    broker = LedBroker().lead(isr=(ME,))

    fail(broker, 0)

    assert broker.exit is not None
    assert broker.exit.code == 1


def test_the_broker_ends_even_if_nothing_lay_in_its_last_directory() -> None:
    """Seed 17: the disk failed under a broker without replicas, which then lived on without a disk."""
    broker = LedBroker()
    directory = broker.node.log_dirs.live_paths[0]

    broker.node.partitions.directory_failed(LogDirectoryFailed(directory, "input/output error"))
    broker.settle()

    assert broker.exit is not None


def test_a_disk_that_fails_while_a_leader_takes_office_is_told_the_controller() -> None:
    """Seed 621071029: the epochs could not be read, and the error went through the whole request."""
    broker = two_directories()
    found = broker.node.partitions.find("orders", 0)
    assert found is not None
    found.log._epochs = None  # as after a start: they are read when first asked for
    found.log.home.directory.failure = "input/output error"

    assert broker.assigned_code(ME, partition=0, epoch=2) == ErrorCode.KAFKA_STORAGE_ERROR

    assert broker.node.partitions.is_offline("orders", 0)
    assert broker.produce_now(a_batch("a"), partition=1).error_code == 0


def test_a_disk_that_refuses_an_append_is_reported_to_the_producer() -> None:
    broker = two_directories()
    found = broker.node.partitions.find("orders", 0)
    assert found is not None
    found.log.home.directory.failure = "read-only file system"

    assert broker.produce_now(a_batch("a"), partition=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.node.partitions.is_offline("orders", 0)


@pytest.mark.parametrize(("is_transactional", "transactional_id"), [(False, None), (True, "payments")])
def test_a_disk_that_cannot_show_the_producers_spoils_its_own_partition_alone(
    is_transactional: bool, transactional_id: str | None
) -> None:
    """A leader that has just been elected looks first whether it knows the producer."""
    broker = two_directories()
    found = broker.node.partitions.find("orders", 0)
    assert found is not None
    found.log._producers = None  # as after a start: they are read when first asked for
    found.log.home.directory.failure = "input/output error"
    producer = {"producer_id": 4, "producer_epoch": 0, "is_transactional": is_transactional}
    spoilt = PartitionProduceData(index=0, records=a_batch("a", base_sequence=3, **producer))
    sound = PartitionProduceData(index=1, records=a_batch("b"))
    topic = TopicProduceData(name="orders", partition_data=[sound, spoilt])

    answer = broker.ask(
        ProduceRequest(transactional_id=transactional_id, acks=1, topic_data=[topic]), version=11
    )

    codes = {row.index: row.error_code for row in answer.responses[0].partition_responses}
    assert codes == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: ErrorCode.NONE}
    assert broker.node.partitions.is_offline("orders", 0)


def test_what_may_lie_on_the_dead_disk_is_not_called_deleted() -> None:
    """Seed 1130523766: its topic was gone from ZooKeeper, and its log came back with the disk."""
    broker = two_directories()
    fail(broker, 0)
    unknown = TopicPartition("orders", 7)

    assert broker.node.partitions.stop_replica(unknown, -2, delete=True) == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.node.partitions.stop_replica(unknown, -2, delete=False) == 0


def test_what_was_deleted_beside_the_dead_disk_stays_deleted_when_it_is_asked_again() -> None:
    broker = two_directories()
    fail(broker, 0)
    here = TopicPartition("orders", 1)

    assert broker.node.partitions.stop_replica(here, -2, delete=True) == 0
    assert broker.node.partitions.stop_replica(here, -2, delete=True) == 0
