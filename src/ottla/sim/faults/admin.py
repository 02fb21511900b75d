"""The operator of the simulated world: topics, reassignments, elections, settings, and a look around."""

from random import Random

from ottla.model.errors import ErrorCode
from ottla.model.ids import CONSUMER, TopicPartition
from ottla.model.timestamps import LATEST
from ottla.sim.load.clients import Client, Surroundings
from ottla.sim.load.scripts import Script, ask
from ottla.sim.plan import Shape, TopicShape
from ottla.sim.truth.history import Violation
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from ottla.wire.apis.describe_groups import DescribeGroupsRequest
from ottla.wire.apis.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.apis.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.apis.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.apis.list_groups import ListGroupsRequest
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from ottla.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.fields import Request

CREATE_VERSION = 7
TIMEOUT_MS = 5_000
TOPIC_RESOURCE = 2
SET = 0
PREFERRED = 0
UNCLEAN = 1


class Admin(Client):
    """Each method is a script; what it asks for may or may not happen."""

    def create_topic(self, topic: TopicShape, shape: Shape) -> Script:
        """Ask until the topic is there; gives its id."""
        settings = {"min.insync.replicas": str(shape.min_insync_replicas), **topic.settings}
        wanted = CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=shape.replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
        while True:
            response = yield from self._ask_controller(request, CREATE_VERSION)
            row = response.topics[0] if response is not None else None
            if row is not None and row.error_code == ErrorCode.NONE:
                return row.topic_id
            if row is not None and row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return None
            yield self.scripts.wait(self.backoff_us())

    def delete_topics(self, names: tuple[str, ...]) -> Script:
        """Ask until the controller says that all of them are gone."""
        states = [DeleteTopicState(name=name) for name in names]
        while states:
            states = yield from self._delete(states, TIMEOUT_MS)
            yield self.scripts.wait(self.backoff_us() if states else 0)

    def delete_by_id(self, topic_ids: list[bytes], *, is_patient: bool) -> Script:
        """Delete by id, so that a late request cannot hit a new topic of the same name. Without patience the
        answer comes before it is done, and nobody asks again."""
        states = [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in topic_ids]
        while states:
            states = yield from self._delete(states, TIMEOUT_MS if is_patient else 50)
            if not is_patient:
                return
            yield self.scripts.wait(self.backoff_us() if states else 0)

    def _delete(self, states: list[DeleteTopicState], timeout_ms: int) -> Script:
        """What is left of them."""
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
        response = yield from self._ask_controller(request, 6)
        if response is None:
            return states
        gone = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
        codes = [row.error_code for row in response.responses]
        return [state for state, code in zip(states, codes, strict=True) if code not in gone]

    def _ask_controller(self, request: Request, version: int) -> Script:
        yield from self.finding_controller()
        return (yield ask(self.controller, request, version))

    # -- once, whatever comes of it ----------------------------------------------------------

    def grow(self, topic: str, count: int) -> Script:
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
        yield from self._ask_controller(request, 3)

    def reassign(self, partition: TopicPartition, replicas: tuple[int, ...] | None) -> Script:
        """Move a partition; None cancels what is under way."""
        row = ReassignablePartition(partition_index=partition.partition, replicas=replicas)
        topics = [ReassignableTopic(name=partition.topic, partitions=[row])]
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)
        yield from self._ask_controller(request, 0)

    def elect(self, partitions: list[TopicPartition], election_type: int) -> Script:
        topics: dict[str, list[int]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        rows = [TopicPartitions(topic=name, partitions=tuple(ids)) for name, ids in topics.items()]
        request = ElectLeadersRequest(
            election_type=election_type, topic_partitions=rows, timeout_ms=TIMEOUT_MS
        )
        yield from self._ask_controller(request, 2)

    def delete_records(self, partition: TopicPartition, offset: int) -> Script:
        yield from self.refreshing([partition.topic])
        leader = self.leaders.get(partition)
        if leader is None:
            return
        row = DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        topics = [DeleteRecordsTopic(name=partition.topic, partitions=[row])]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
        yield ask(leader.broker, request, 2)

    def move_directory(self, broker: int, partition: TopicPartition, directory: str) -> Script:
        topics = [AlterReplicaLogDirTopic(name=partition.topic, partitions=(partition.partition,))]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=topics)])
        yield ask(broker, request, 2)

    def remove_member(self, group: str, instance_id: str) -> Script:
        """Take a static member out of its group, whatever its member id is."""
        found = yield ask(self.any_broker(), FindCoordinatorRequest(key=group, key_type=0), 2)
        if found is None or found.error_code != ErrorCode.NONE:
            return
        leaving = MemberIdentity(member_id="", group_instance_id=instance_id)
        request = LeaveGroupRequest(group_id=group, members=[leaving])
        yield ask(found.node_id, request, 3)

    def alter_topic(self, topic: str, name: str, value: str) -> Script:
        config = AlterableConfig(name=name, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        yield from self._ask_controller(request, 1)


class Onlooker(Client):
    """Asks whatever can be asked without harm, and remembers how far each partition reached."""

    def __init__(self, around: Surroundings, name: str) -> None:
        super().__init__(around, name)
        self._ends: dict[TopicPartition, int] = {}

    def look(self, partition: TopicPartition, luck: Random, *, is_clean: bool) -> Script:
        """One round of questions."""
        questions = _questions(partition)
        for request, version in luck.sample(questions, 3):
            yield ask(self.any_broker(), request, version)
        yield from self.refreshing([partition.topic])
        yield from self._look_at_end(partition, is_clean=is_clean)

    def _look_at_end(self, partition: TopicPartition, *, is_clean: bool) -> Script:
        """A partition's end, as one client sees it, never goes back over a clean election."""
        leader = self.leaders.get(partition)
        if leader is None:
            return
        row = ListOffsetsPartition(
            partition_index=partition.partition, current_leader_epoch=leader.epoch, timestamp=LATEST
        )
        topics = [ListOffsetsTopic(name=partition.topic, partitions=[row])]
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=topics)
        response = yield ask(leader.broker, request, 7)
        found = response.topics[0].partitions[0] if response is not None else None
        if found is None or found.error_code != ErrorCode.NONE:
            return
        before = self._ends.get(partition, 0)
        if found.offset < before and is_clean:
            raise Violation(f"the end of {partition} went back from {before} to {found.offset} for a client")
        self._ends[partition] = found.offset


def _questions(partition: TopicPartition) -> list[tuple[Request, int]]:
    topic, index = partition
    configs = [
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None)
    ]
    epochs = [OffsetForLeaderPartition(partition=index, current_leader_epoch=-1, leader_epoch=1)]
    return [
        (ApiVersionsRequest("sim", "1"), 3),
        (DescribeClusterRequest(), 0),
        (DescribeConfigsRequest(resources=configs), 4),
        (DescribeGroupsRequest(groups=("group-0",)), 5),
        (ListGroupsRequest(), 4),
        (DescribeLogDirsRequest(topics=None), 4),
        (
            DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=(index,))]),
            0,
        ),
        (ListPartitionReassignmentsRequest(), 0),
        (
            OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=epochs)]),
            4,
        ),
    ]
