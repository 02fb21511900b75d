"""Consumer groups: list, describe and delete them, read and set their offsets."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.asking import ask_all, ask_coordinator, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.model.ids import TopicPartition
from ottla.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)


def list_groups(
    engine: Engine, *, states: Iterable[str] = (), timeout_ms: int | None = None
) -> Operation[list[ListedGroup]]:
    """All groups of all coordinators, or those in some states; one that still loads is asked again."""
    request = ListGroupsRequest(states_filter=tuple(states))
    answers = yield from ask_all(engine, request, ListGroupsResponse, timeout_ms, lambda r: [r.error_code])
    groups: list[ListedGroup] = []
    for answer in answers.values():
        raise_for(answer.error_code)
        groups += answer.groups
    return groups


def describe_group(engine: Engine, group: str, timeout_ms: int | None = None) -> Operation[DescribedGroup]:
    """A group's state and members; the state of a group that does not exist is ``Dead``."""
    response = yield from ask_coordinator(
        engine,
        group,
        DescribeGroupsRequest(groups=(group,)),
        DescribeGroupsResponse,
        lambda r: [row.error_code for row in r.groups],
        timeout_ms=timeout_ms,
    )
    described = response.groups[0]
    raise_for(described.error_code)
    return described


def delete_group(engine: Engine, group: str, timeout_ms: int | None = None) -> Operation[None]:
    """Delete a group without members, and its offsets."""
    response = yield from ask_coordinator(
        engine,
        group,
        DeleteGroupsRequest(groups_names=(group,)),
        DeleteGroupsResponse,
        lambda r: [row.error_code for row in r.results],
        timeout_ms=timeout_ms,
    )
    raise_for(response.results[0].error_code)


def list_group_offsets(
    engine: Engine,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: int | None = None,
) -> Operation[dict[TopicPartition, OffsetFetchResponsePartitions]]:
    """The committed offsets of these partitions, or of all; one row each."""
    response = yield from ask_coordinator(
        engine,
        group,
        offsets_request(group, partitions),
        OffsetFetchResponse,
        lambda r: [row.error_code for row in r.groups],
        timeout_ms=timeout_ms,
    )
    return offset_rows(response)


def offsets_request(
    group: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool = False
) -> OffsetFetchRequest:
    """A request for the committed offsets of these partitions, or of all."""
    topics: dict[str, OffsetFetchRequestTopics] | None = None
    if partitions is not None:
        topics = {}
        for partition in partitions:
            row = topics.setdefault(partition.topic, OffsetFetchRequestTopics(name=partition.topic))
            row.partition_indexes = (*row.partition_indexes, partition.partition)
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else list(topics.values()))
    return OffsetFetchRequest(groups=[wanted], require_stable=require_stable)


def offset_rows(response: OffsetFetchResponse) -> dict[TopicPartition, OffsetFetchResponsePartitions]:
    """The rows of a response; an error of the whole group is raised."""
    answer = response.groups[0]
    raise_for(answer.error_code)
    return {TopicPartition(t.name, row.partition_index): row for t in answer.topics for row in t.partitions}


def alter_group_offsets(
    engine: Engine, group: str, offsets: Mapping[TopicPartition, int], timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, int]]:
    """Set the offsets of a group without members; an error code for each partition."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for partition, offset in offsets.items():
        topic = topics.setdefault(partition.topic, OffsetCommitRequestTopic(name=partition.topic))
        row = OffsetCommitRequestPartition(partition_index=partition.partition, committed_offset=offset)
        topic.partitions.append(row)
    response = yield from ask_coordinator(
        engine,
        group,
        OffsetCommitRequest(group_id=group, topics=list(topics.values())),
        OffsetCommitResponse,
        lambda r: [row.error_code for t in r.topics for row in t.partitions],
        timeout_ms=timeout_ms,
    )
    return {
        TopicPartition(topic.name, row.partition_index): row.error_code
        for topic in response.topics
        for row in topic.partitions
    }


def delete_group_offsets(
    engine: Engine, group: str, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, int]]:
    """Delete a group's offsets of these partitions; an error code for each."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, OffsetDeleteRequestTopic(name=partition.topic))
        topic.partitions.append(OffsetDeleteRequestPartition(partition_index=partition.partition))
    response = yield from ask_coordinator(
        engine,
        group,
        OffsetDeleteRequest(group_id=group, topics=list(topics.values())),
        OffsetDeleteResponse,
        lambda r: [r.error_code],
        timeout_ms=timeout_ms,
    )
    raise_for(response.error_code)
    return {
        TopicPartition(topic.name, row.partition_index): row.error_code
        for topic in response.topics
        for row in topic.partitions
    }
