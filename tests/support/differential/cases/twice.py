"""The same thing named twice in one request, and names and numbers as large as they can be.

Not asked: what is answered with a reason that has the longest name in it. Apache's reason is then too long
for its answer, which says UNKNOWN_SERVER_ERROR instead; Ottla cuts the reason.
"""

from __future__ import annotations

from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.apis.delete_groups import DeleteGroupsRequest
from ottla.wire.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.apis.describe_groups import DescribeGroupsRequest
from ottla.wire.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.apis.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.differential.cases.offsets import fill, list_offset
from support.differential.talk import Cases, Talk

CASES = Cases()
UNKNOWN_ID = bytes(range(16))
TOPIC = 2
LONGEST = "n" * 32_767
MAX_I32, MAX_I64 = 2**31 - 1, 2**63 - 1


@CASES.add_for((4, 2), (2, 4), (-1, 1), (99, 3), (3, 99))
def delete_records_of_a_partition_named_twice(talk: Talk, offsets: tuple[int, int]) -> None:
    fill(talk)
    rows = [DeleteRecordsPartition(talk.partition, offset) for offset in offsets]
    cut = [DeleteRecordsTopic(talk.topic(), rows)]
    talk.ask(DeleteRecordsRequest(topics=cut, timeout_ms=3_000), 2, note="in one topic")
    list_offset(talk, -2)
    cut = [DeleteRecordsTopic(talk.topic(), [row]) for row in rows]
    talk.ask(DeleteRecordsRequest(topics=cut, timeout_ms=3_000), 2, note="in two topics")
    list_offset(talk, -2)


@CASES.add
def delete_records_of_an_unknown_topic_named_twice(talk: Talk) -> None:
    cut = [DeleteRecordsTopic("nobody", [DeleteRecordsPartition(0, 1)])] * 2
    talk.ask(DeleteRecordsRequest(topics=cut, timeout_ms=3_000), 2)


@CASES.add_for(0, -1, MAX_I32, -MAX_I32)
def delete_records_within(talk: Talk, timeout_ms: int) -> None:
    fill(talk)
    for offset in (MAX_I64, -MAX_I64, 2):
        cut = [DeleteRecordsTopic(talk.topic(), [DeleteRecordsPartition(talk.partition, offset)])]
        talk.ask(DeleteRecordsRequest(topics=cut, timeout_ms=timeout_ms), 2, note=f"to {offset}")


@CASES.add
def metadata_of_ids_named_twice(talk: Talk) -> None:
    known, unknown = talk.topic_id("tiny"), UNKNOWN_ID
    for ids in ((known, known), (unknown, unknown), (known, unknown), (unknown, known, unknown)):
        topics = [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
        talk.ask(MetadataRequest(topics=topics), 12, note=f"{len(ids)} ids")
    topics = [
        MetadataRequestTopic(topic_id=known, name=None),
        MetadataRequestTopic(name=talk.topic("compact")),
        MetadataRequestTopic(name="nobody"),
    ]
    talk.ask(MetadataRequest(topics=topics), 12, note="an id beside names")


@CASES.add
def questions_about_a_partition_asked_twice(talk: Talk) -> None:
    fill(talk)
    index = talk.partition
    epochs = [OffsetForLeaderTopic(talk.topic(), [OffsetForLeaderPartition(index, -1, 0)] * 2)] * 2
    talk.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=epochs), 4)
    rows = [ListOffsetsPartition(index, -1, timestamp) for timestamp in (-1, -2)]
    talk.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(talk.topic(), rows)]), 7)
    talk.ask(
        ListOffsetsRequest(topics=[ListOffsetsTopic(talk.topic(), [row]) for row in rows]), 7, note="apart"
    )
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(talk.topic(), (index, index))] * 2), 0)
    talk.ask(DescribeLogDirsRequest(topics=[DescribableLogDirTopic(talk.topic(), (index, index))] * 2), 4)


@CASES.add
def replicas_moved_twice(talk: Talk) -> None:
    topics = [AlterReplicaLogDirTopic(talk.topic(), (talk.partition, talk.partition))]
    moved = [AlterReplicaLogDir("/nowhere", topics), AlterReplicaLogDir("/elsewhere", topics)]
    talk.ask(AlterReplicaLogDirsRequest(dirs=moved), 2)


@CASES.add
def groups_named_twice(talk: Talk) -> None:
    talk.ask(DescribeGroupsRequest(groups=("g", "g", "")), 5)
    talk.ask(DeleteGroupsRequest(groups_names=("g", "g", "")), 2)
    talk.ask(FindCoordinatorRequest(coordinator_keys=("g", "g", ""), key_type=0), 4)
    rows = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(0)]
    talk.ask(OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(talk.topic(), rows)] * 2), 0)


@CASES.add
def settings_described_twice(talk: Talk) -> None:
    one = DescribeConfigsResource(TOPIC, talk.topic("tiny"), ("max.message.bytes", "max.message.bytes"))
    talk.ask(DescribeConfigsRequest(resources=[one, one]), 4)


@CASES.add
def names_as_long_as_they_can_be(talk: Talk) -> None:
    talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=LONGEST)]), 12)
    talk.ask(DescribeGroupsRequest(groups=(LONGEST,)), 5)
    talk.ask(FindCoordinatorRequest(coordinator_keys=(LONGEST,), key_type=0), 4)
