"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where a log begins, ends and changed hands."""

from __future__ import annotations

from ottla.wire.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.differential.batches_to_send import a_batch
from support.differential.cases.fetch import fill
from support.differential.cases.produce import end_offset, produce
from support.differential.talk import Cases, Talk
from support.differential.target import NOW_MS

CASES = Cases()


def list_offset(
    talk: Talk,
    timestamp: int,
    *,
    version: int = 9,
    topic: str | None = None,
    partition: int | None = None,
    epoch: int = -1,
    replica: int = -1,
    isolation: int = 0,
    note: str = "",
) -> None:
    asked = ListOffsetsPartition(
        partition_index=talk.partition if partition is None else partition,
        timestamp=timestamp,
        current_leader_epoch=epoch,
        max_num_offsets=5 if version == 0 else 1,
    )
    wanted = ListOffsetsTopic(name=talk.topic() if topic is None else topic, partitions=[asked])
    request = ListOffsetsRequest(
        replica_id=replica, isolation_level=isolation if version >= 2 else 0, topics=[wanted]
    )
    talk.ask(request, version, note=note or f"timestamp {timestamp}")


def fill_by_time(talk: Talk) -> None:
    for late_ms in (0, 500, 200, 900):
        produce(talk, a_batch(3, timestamp=NOW_MS + late_ms))


@CASES.add_for(*range(10))
def list_offsets_in_version(talk: Talk, version: int) -> None:
    fill_by_time(talk)
    for timestamp in (-1, -2):
        list_offset(talk, timestamp, version=version)
    if version:
        list_offset(talk, NOW_MS + 400, version=version, note="by time")


@CASES.add_for(-1, -2, -3, -4, -5, -6, -100)
def list_offsets_for_timestamp(talk: Talk, timestamp: int) -> None:
    list_offset(talk, timestamp, note="of an empty log")
    fill_by_time(talk)
    for version in (1, 6, 7, 8, 9):
        list_offset(talk, timestamp, version=version)


@CASES.add_for(-1, 0, 1, 2, 3, 500, 501, 899, 902, 903, 10_000)
def list_offsets_by_time(talk: Talk, late_ms: int) -> None:
    fill_by_time(talk)
    list_offset(talk, NOW_MS + late_ms, note=f"{late_ms} ms later")


@CASES.add_for(0, 1, -7)
def list_offsets_with_epoch(talk: Talk, epoch: int) -> None:
    fill(talk)
    list_offset(talk, -1, epoch=epoch)
    list_offset(talk, -2, epoch=epoch, version=4)


@CASES.add_for(0, 1, 2, -1)
def list_offsets_with_isolation(talk: Talk, isolation: int) -> None:
    fill(talk)
    list_offset(talk, -1, isolation=isolation)
    list_offset(talk, -2, isolation=isolation)


@CASES.add_for(-2, 0, 99)
def list_offsets_as_replica(talk: Talk, replica: int) -> None:
    fill(talk)
    list_offset(talk, -1, replica=replica)
    list_offset(talk, -2, replica=replica)


@CASES.add_for(1, 5, 9)
def list_offsets_of_what_is_not_there(talk: Talk, version: int) -> None:
    list_offset(talk, -1, version=version, topic="nobody", note="unknown topic")
    list_offset(talk, -1, version=version, topic="a/b", note="illegal topic")
    list_offset(talk, -1, version=version, partition=99_999, note="unknown partition")
    list_offset(talk, -1, version=version, partition=-1, note="negative partition")
    list_offset(talk, -1, version=version, topic=talk.target.the_peer.topic("plain"), note="of the peer")


@CASES.add
def list_offsets_of_a_partition_named_twice(talk: Talk) -> None:
    fill(talk)
    asked = [ListOffsetsPartition(partition_index=talk.partition, timestamp=when) for when in (-1, -2)]
    talk.ask(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(talk.topic(), asked)]), 9)
    talk.ask(ListOffsetsRequest(replica_id=-1), 9, note="of nothing")


@CASES.add
def list_offsets_without_timestamps_in_the_log(talk: Talk) -> None:
    produce(talk, a_batch(2, timestamp=-1))
    for timestamp in (-3, 0, NOW_MS):
        list_offset(talk, timestamp)


def ask_epoch(
    talk: Talk,
    epoch: int,
    *,
    version: int = 4,
    current: int = -1,
    topic: str | None = None,
    partition: int | None = None,
    note: str = "",
) -> None:
    asked = OffsetForLeaderPartition(
        partition=talk.partition if partition is None else partition,
        current_leader_epoch=current,
        leader_epoch=epoch,
    )
    wanted = OffsetForLeaderTopic(topic=talk.topic() if topic is None else topic, partitions=[asked])
    request = OffsetForLeaderEpochRequest(replica_id=-1 if version >= 3 else -2, topics=[wanted])
    talk.ask(request, version, note=note or f"epoch {epoch}")


@CASES.add_for(*range(5))
def offset_for_leader_epoch_in_version(talk: Talk, version: int) -> None:
    ask_epoch(talk, 0, version=version, note="of an empty log")
    fill(talk)
    for epoch in (0, 1, -1, -5):
        ask_epoch(talk, epoch, version=version)
    ask_epoch(talk, 0, version=version, topic="nobody", note="unknown topic")
    ask_epoch(talk, 0, version=version, partition=99_999, note="unknown partition")
    ask_epoch(talk, 0, version=version, topic=talk.target.the_peer.topic("plain"), note="of the peer")


@CASES.add_for(0, 3, -2)
def offset_for_leader_epoch_with_current_epoch(talk: Talk, current: int) -> None:
    fill(talk)
    ask_epoch(talk, 0, current=current)


def delete_records(
    talk: Talk,
    offset: int,
    *,
    version: int = 2,
    topic: str | None = None,
    partition: int | None = None,
    note: str = "",
) -> None:
    index = talk.partition if partition is None else partition
    cut = DeleteRecordsTopic(
        talk.topic() if topic is None else topic, [DeleteRecordsPartition(index, offset)]
    )
    talk.ask(DeleteRecordsRequest(topics=[cut], timeout_ms=3_000), version, note=note or f"to {offset}")


@CASES.add_for(0, 1, 2)
def delete_records_in_version(talk: Talk, version: int) -> None:
    fill(talk)
    for offset in (4, 2, 4, 0, 10, -2, -1, -1):
        delete_records(talk, offset, version=version)
    list_offset(talk, -2)
    end_offset(talk)


@CASES.add
def delete_records_of_what_is_not_there(talk: Talk) -> None:
    delete_records(talk, 0, topic="nobody", note="unknown topic")
    delete_records(talk, 0, topic="a/b", note="illegal topic")
    delete_records(talk, 0, partition=99_999, note="unknown partition")
    delete_records(talk, 0, topic=talk.target.the_peer.topic("plain"), note="of the peer")
    delete_records(talk, 0, topic="__consumer_offsets", partition=0, note="internal")
    talk.ask(DeleteRecordsRequest(timeout_ms=1_000), 2, note="of nothing")


@CASES.add
def delete_records_of_a_compacted_topic(talk: Talk) -> None:
    produce(talk, a_batch(3), kind="compact")
    delete_records(talk, 1, topic=talk.topic("compact"), partition=talk.partition_of("compact"))
