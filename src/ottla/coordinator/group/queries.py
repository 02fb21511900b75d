"""Requests that only read: OffsetFetch, DescribeGroups, ListGroups."""

from collections.abc import Iterable

from ottla.coordinator.group.group import Group
from ottla.coordinator.group.states import GroupState
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.apis.list_groups import ListedGroup
from ottla.wire.apis.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET = -1
NO_LEADER_EPOCH = -1
CLASSIC = "classic"


def fetch_offsets(
    group: Group | None,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    unstable: frozenset[TopicPartition] = frozenset(),
) -> OffsetFetchResponseGroup:
    """The committed offsets asked for, or all; −1 where there is none, an error for ``unstable`` ones."""
    known = group.offsets if group is not None and group.state is not GroupState.DEAD else {}
    topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for tp in known if partitions is None else dict.fromkeys(partitions):
        committed = known.get(tp)
        if tp in unstable:
            row = _no_offset(tp, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        elif committed is None:
            row = _no_offset(tp, ErrorCode.NONE)
        else:
            row = OffsetFetchResponsePartitions(
                partition_index=tp.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=ErrorCode.NONE,
            )
        topics.setdefault(tp.topic, []).append(row)
    return OffsetFetchResponseGroup(
        group_id=group_id,
        topics=[OffsetFetchResponseTopics(name=name, partitions=rows) for name, rows in topics.items()],
        error_code=ErrorCode.NONE,
    )


def _no_offset(tp: TopicPartition, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=tp.partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error,
    )


def describe(group: Group | None, group_id: str) -> DescribedGroup:
    """Describe a group; an unknown group is ``Dead``, not an error."""
    if group is None or group.state is GroupState.DEAD:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata_for(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )


def describe_refused(group_id: str, error: ErrorCode) -> DescribedGroup:
    """A refused DescribeGroups."""
    return DescribedGroup(error_code=error, group_id=group_id)


def list_groups(groups: Iterable[Group], states: frozenset[str], types: frozenset[str]) -> list[ListedGroup]:
    """The groups that match the filters, which are lower case; an empty filter matches all."""
    if types and CLASSIC not in types:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
        for group in groups
        if not states or group.state.value.lower() in states
    ]
