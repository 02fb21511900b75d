"""A replica moves to another log directory of its broker while it is written to and read from."""

import errno

import pytest

from ottla.broker.replicas import directory_move
from ottla.model.ids import TopicPartition
from ottla.storage.log.log import Log
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.apis.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from support.bench import node_bench
from support.bench.led_broker import ME, SECOND, TOPIC, TOPIC_ID, LedBroker, a_batch, headers
from support.bench.node_bench import a_config
from support.logs.builders import all_records

HERE, THERE = "/a", "/b"
NAME = TopicPartition(TOPIC, 0)
NOT_FOUND, STORAGE_ERROR, NOT_AVAILABLE, INVALID_TOPIC = 57, 56, 9, 17


@pytest.fixture
def broker() -> LedBroker:
    """Two directories; the partition lies in the first and holds a few records."""
    one = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME,))
    one.node.directory_moves.wishes[NAME] = HERE
    one.lead()
    for number in range(5):
        one.produce_now(a_batch(f"early {number}"))
    return one


def alter(broker: LedBroker, path: str, partition: int = 0) -> int:
    topic = AlterReplicaLogDirTopic(name=broker.topic, partitions=(partition,))
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
    code: int = broker.ask(request, 2).results[0].partitions[0].error_code
    return code


def described(broker: LedBroker) -> dict[str, list[tuple[bool, int]]]:
    """Of each directory, the partition's replicas in it: is it a copy, and how far is it behind?"""
    return {
        directory.log_dir: [
            (each.is_future_key, each.offset_lag) for topic in directory.topics for each in topic.partitions
        ]
        for directory in broker.ask(DescribeLogDirsRequest(topics=None), 4).results
    }


def values(log: Log) -> list[bytes]:
    """The log's bytes, batch by batch."""
    found = log.read(log.log_start_offset, 10_000_000, log.end_offset, True)
    assert found is not None
    return [found.read()]


def test_replica_is_copied_and_swapped(broker: LedBroker) -> None:
    before = values(broker.log)
    epochs = broker.log.epochs.entries()

    assert alter(broker, THERE) == 0
    assert described(broker) == {HERE: [(False, 0)], THERE: [(True, 5)]}
    broker.advance(1_000)

    assert described(broker) == {HERE: [], THERE: [(False, 0)]}
    assert broker.log is broker.node.log_dirs.logs[NAME]
    assert broker.log.directory == THERE
    assert values(broker.log) == before
    assert broker.log.epochs.entries() == epochs
    assert broker.log.high_watermark == broker.log.end_offset == 5
    assert broker.log.topic_id == TOPIC_ID
    assert broker.fetch_now(0).records is not None
    assert broker.produce_now(a_batch("later")).base_offset == 5
    left = [entry.name for entry in broker.disk.list_directory(HERE) if entry.is_directory]
    assert [name.endswith("-delete") for name in left] == [True]


def test_records_that_come_during_the_move_are_moved_too(
    broker: LedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_move, "PORTION_BYTES", 1)
    alter(broker, THERE)
    for number in range(8):
        broker.node.on_tick()
        broker.settle()
        assert broker.produce_now(a_batch(f"meanwhile {number}")).error_code == 0
    broker.advance(1_000)

    assert broker.log.directory == THERE
    assert broker.log.end_offset == 13
    assert broker.produce_now(a_batch("later")).base_offset == 13


def test_a_copy_keeps_to_its_rate(broker: LedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_move, "PORTION_BYTES", 1)
    for number in range(6):
        broker.produce_now(a_batch(f"{number}" * 1_000))
    broker.node.throttles.directories.limit = 100

    alter(broker, THERE)
    broker.advance(5_000)
    future = broker.node.log_dirs.futures.get(NAME)
    assert future is not None
    assert 0 < future.end_offset < broker.log.end_offset
    broker.advance(200_000)

    assert broker.log.directory == THERE


def test_wish_for_the_present_place_ends_a_move(broker: LedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_move, "PORTION_BYTES", 1)
    alter(broker, THERE)
    broker.node.on_tick()

    assert alter(broker, HERE) == 0
    broker.advance(1_000)

    assert described(broker) == {HERE: [(False, 0)], THERE: []}
    assert broker.log.directory == HERE


def test_unknown_and_failed_directories_and_absent_replicas_are_refused(broker: LedBroker) -> None:
    assert alter(broker, "/nowhere") == NOT_FOUND
    assert alter(broker, THERE, partition=7) == NOT_AVAILABLE
    broker.node.log_dirs.take_offline(THERE, "pulled out")
    assert alter(broker, THERE) == STORAGE_ERROR
    assert broker.log.directory == HERE


def test_follower_moves_and_fetches_on_behind_its_last_record() -> None:
    one = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME, SECOND))
    one.node.directory_moves.wishes[NAME] = HERE
    one.follow()
    one.connect_links()
    batch = a_batch("of the leader")
    batch[12:16] = one.epoch.to_bytes(4, "big")
    answer(one, batch, 0)
    assert one.log.end_offset == 1

    alter(one, THERE)
    one.advance(1_000)
    assert one.log.directory == THERE

    batch[0:8] = (1).to_bytes(8, "big")
    answer(one, batch, 1)
    assert one.log.end_offset == 2
    assert one.log.high_watermark == 1
    assert one.last_request(FetchRequest)[3].topics[0].partitions[0].fetch_offset == 2


def answer(one: LedBroker, batch: bytearray, high_watermark: int) -> None:
    row = PartitionData(
        partition_index=0,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=0,
        records=bytes(batch),
    )
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[row])
    one.answer_peer(FetchRequest, FetchResponse(session_id=0, responses=[topic]))


def test_deleted_replica_takes_its_copy_along(broker: LedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_move, "PORTION_BYTES", 1)
    alter(broker, THERE)
    broker.node.on_tick()

    broker.node.partitions.stop_replica(NAME, -2, delete=True)
    broker.advance(1_000)

    assert described(broker) == {HERE: [], THERE: []}
    assert not [each for each in broker.disk.list_directory(THERE) if each.name.endswith("-future")]


def test_log_that_is_cut_below_the_copy_is_copied_anew(broker: LedBroker) -> None:
    alter(broker, THERE)
    broker.node.on_tick()
    future = broker.node.log_dirs.futures.get(NAME)
    assert future is not None
    assert future.end_offset == 5

    broker.log.truncate_to(2)
    broker.partition.leader.end_offset = broker.partition.leader.high_watermark = 2
    broker.produce_now(a_batch("another third"))
    broker.advance(1_000)

    assert broker.log.directory == THERE
    assert broker.log.end_offset == 3
    assert b"another third" in values(broker.log)[0]
    assert b"early 2" not in values(broker.log)[0]


TRUE_VALUES = [b"old 0", b"new 1", b"new 2", b"new 3", b"new 4", b"new 5"]


def a_moving_follower() -> LedBroker:
    """It has four committed records of its leader, all of them copied, and the copy must wait."""
    one = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME, SECOND))
    one.node.directory_moves.wishes[NAME] = HERE
    one.follow()
    put(one, "old", range(4), epoch=1)
    alter(one, THERE)
    one.node.throttles.directories.limit = 1
    one.advance(0)
    future = one.node.log_dirs.futures.get(NAME)
    assert future is not None
    assert future.end_offset == 4
    return one


def put(one: LedBroker, name: str, offsets: range, epoch: int) -> None:
    """What a leader of that epoch wrote, committed at once."""
    for offset in offsets:
        batch = a_batch(f"{name} {offset}", base_offset=offset, leader_epoch=epoch)
        one.log.append_as_follower(batch, now_ms=one.clock.wall_ms())
    one.log.set_high_watermark(one.log.end_offset)


def after_an_unclean_election(one: LedBroker) -> None:
    """Another leader had but the first record of those, and wrote five others."""
    one.log.truncate_to(1)
    put(one, "new", range(1, 6), epoch=2)


def values_moved(one: LedBroker) -> list[bytes | None]:
    one.node.throttles.directories.limit = 2**63 - 1
    one.advance(5_000)
    assert one.log.directory == THERE
    return [record.value for record in all_records(one.log)]


def test_records_that_an_unclean_election_cut_off_do_not_come_back_with_the_copy() -> None:
    one = a_moving_follower()

    after_an_unclean_election(one)

    assert values_moved(one) == TRUE_VALUES
    assert [tuple(entry) for entry in one.log.epochs.entries()] == [(1, 0), (2, 1)]


def test_wish_that_is_said_twice_forgets_no_cut() -> None:
    one = a_moving_follower()

    after_an_unclean_election(one)
    alter(one, THERE)

    assert values_moved(one) == TRUE_VALUES


def test_copy_that_was_out_of_sight_is_held_against_the_log() -> None:
    one = a_moving_follower()
    one.node.directory_moves.stop()

    after_an_unclean_election(one)
    one.log.take_lowest_cut()
    alter(one, THERE)

    assert values_moved(one) == TRUE_VALUES


def test_log_that_begins_anew_takes_its_copy_along() -> None:
    one = a_moving_follower()

    one.log.truncate_fully_and_start_at(2)
    put(one, "new", range(2, 6), epoch=2)

    assert values_moved(one) == TRUE_VALUES[2:]
    assert one.log.log_start_offset == 2


def test_copy_that_a_restart_finds_is_held_against_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    one = a_moving_follower()
    after_an_unclean_election(one)
    one.node.housekeeping._checkpoint_high_watermarks()
    one.settle()
    one.disk.kill()
    monkeypatch.setattr(node_bench, "CrashDisk", lambda _: one.disk)

    again = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME, SECOND))
    again.follow(is_new=False)

    assert again.log.directory == HERE
    assert values_moved(again) == TRUE_VALUES


def test_replica_that_cannot_be_read_stays_and_says_so(
    broker: LedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{broker.log.path}/{0:020}.log"
    content = bytearray(broker.disk.read_file(path))
    content[-3] ^= 0xFF
    broker.disk.write_file(path, content)

    assert alter(broker, THERE) == 0
    broker.advance(1_000)

    assert broker.log.directory == HERE
    assert described(broker)[THERE] == []
    assert any("cannot be copied" in message for message in caplog.messages)


def test_directory_that_fails_during_the_move_leaves_the_replica_where_it_is(broker: LedBroker) -> None:
    alter(broker, THERE)
    broker.node.on_tick()
    broker.node.log_dirs.directories[THERE].failure = "pulled out"
    broker.produce_now(a_batch("meanwhile"))
    broker.advance(1_000)

    assert broker.log.directory == HERE
    assert broker.node.log_dirs.futures.get(NAME) is None
    assert broker.produce_now(a_batch("later")).base_offset == 6


def test_copy_that_cannot_get_its_name_leaves_the_replica_in_use_where_it_was(
    broker: LedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = broker.disk.rename

    def refuse(old: str, new: str) -> None:
        if new == f"{THERE}/{NAME}":
            raise OSError(errno.EIO, "pulled out", new)
        rename(old, new)

    monkeypatch.setattr(broker.disk, "rename", refuse)
    alter(broker, THERE)
    broker.advance(1_000)

    assert described(broker)[HERE] == [(False, 0)]
    assert list(broker.node.log_dirs.offline) == [THERE]
    broker.advance(200_000)
    assert broker.produce_now(a_batch("later")).base_offset == 5
    assert len(headers(broker.fetch_now(0))) == 6
    assert broker.exit is None


def test_broker_that_restarts_in_the_middle_goes_on_with_the_copy(
    broker: LedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_move, "PORTION_BYTES", 1)
    alter(broker, THERE)
    broker.node.on_tick()
    half = broker.node.log_dirs.futures.get(NAME)
    assert half is not None
    assert 0 < half.end_offset < 5
    broker.node.housekeeping._checkpoint_high_watermarks()
    broker.settle()
    before = values(broker.log)
    broker.disk.kill()
    monkeypatch.setattr(node_bench, "CrashDisk", lambda _: broker.disk)

    again = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME,))
    again.lead(is_new=False)
    assert again.log.directory == HERE
    again.advance(1_000)

    assert again.log.directory == THERE
    assert values(again.log) == before
    assert described(again) == {HERE: [], THERE: [(False, 0)]}


@pytest.mark.parametrize(("length", "code"), [(213, 0), (214, INVALID_TOPIC), (249, INVALID_TOPIC)])
def test_a_name_without_room_for_that_of_a_copy_is_refused_and_no_directory_fails(
    length: int, code: int
) -> None:
    broker = LedBroker(a_config(log_dirs=f"{HERE},{THERE}"), brokers=(ME,))
    broker.topic = "x" * length
    broker.node.directory_moves.wishes[TopicPartition(broker.topic, 0)] = HERE
    broker.lead()

    assert alter(broker, THERE) == code
    broker.advance(1_000)

    assert broker.log.directory == (HERE if code else THERE)
    assert broker.node.log_dirs.offline == {}
    assert alter(broker, "/nowhere") == (code or NOT_FOUND)


def test_a_log_with_the_longest_name_can_be_deleted() -> None:
    broker = LedBroker(brokers=(ME,))
    broker.topic = "x" * 249
    broker.lead()

    broker.node.partitions.stop_replica(TopicPartition(broker.topic, 0), -2, delete=True)

    assert broker.node.log_dirs.offline == {}
