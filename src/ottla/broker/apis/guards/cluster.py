"""Guards of APIs that need a right to the cluster, and whose answers repeat the error in their rows."""

from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import CLUSTER_WORDS, FORBIDDEN_CLUSTER, RowKind
from ottla.broker.apis.guards.whole import refused
from ottla.broker.clients.request import Request
from ottla.wire.apis import alter_client_quotas as quotas_api
from ottla.wire.apis import alter_partition_reassignments as reassign_api
from ottla.wire.apis import alter_replica_log_dirs as dirs_api
from ottla.wire.apis import alter_user_scram_credentials as scram_api
from ottla.wire.apis import create_acls as create_acls_api
from ottla.wire.apis import delete_acls as delete_acls_api
from ottla.wire.apis import describe_client_quotas as describe_quotas_api
from ottla.wire.apis import describe_user_scram_credentials as describe_scram_api
from ottla.wire.apis import elect_leaders as elect_api
from ottla.wire.apis import leader_and_isr as leader_api
from ottla.wire.apis import list_partition_reassignments as list_api
from ottla.wire.apis import stop_replica as stop_api

_ELECTED = RowKind(
    elect_api.ReplicaElectionResult,
    lambda index, error: elect_api.PartitionResult(index, error, None),
)
_REASSIGNED = RowKind(
    reassign_api.ReassignableTopicResponse,
    lambda index, error: reassign_api.ReassignablePartitionResponse(index, error, CLUSTER_WORDS),
)
_LISTED = RowKind(
    list_api.OngoingTopicReassignment, lambda index, error: list_api.OngoingPartitionReassignment(index)
)
_MOVED = RowKind(
    dirs_api.AlterReplicaLogDirTopicResult,
    lambda index, error: dirs_api.AlterReplicaLogDirPartitionResult(index, error),
)


def leader_and_isr(node: Any, access: Access, request: Request, body: leader_api.LeaderAndIsrRequest) -> Any:
    if access.cluster():
        return None
    response = leader_api.LeaderAndIsrResponse(error_code=FORBIDDEN_CLUSTER, partition_errors=[], topics=[])
    states = [(state.topic_name, state) for state in body.ungrouped_partition_states]
    for topic in body.topic_states:
        rows = [(topic.topic_name, state) for state in topic.partition_states]
        if request.api_version >= 5:
            errors = [_leader_row("", state) for _, state in rows]
            response.topics.append(
                leader_api.LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors)
            )
        else:
            states += rows
    response.partition_errors = [_leader_row(name, state) for name, state in states]
    return response


def _leader_row(topic: str, state: Any) -> leader_api.LeaderAndIsrPartitionError:
    return leader_api.LeaderAndIsrPartitionError(
        topic_name=topic, partition_index=state.partition_index, error_code=FORBIDDEN_CLUSTER
    )


def stop_replica(node: Any, access: Access, request: Request, body: stop_api.StopReplicaRequest) -> Any:
    if access.cluster():
        return None
    named = [(each.topic_name, each.partition_index) for each in body.ungrouped_partitions]
    named += [(topic.name, index) for topic in body.topics for index in topic.partition_indexes]
    named += [
        (topic.topic_name, state.partition_index)
        for topic in body.topic_states
        for state in topic.partition_states
    ]
    rows = [stop_api.StopReplicaPartitionError(topic, index, FORBIDDEN_CLUSTER) for topic, index in named]
    return stop_api.StopReplicaResponse(error_code=FORBIDDEN_CLUSTER, partition_errors=rows)


def elect_leaders(node: Any, access: Access, request: Request, body: elect_api.ElectLeadersRequest) -> Any:
    if access.cluster():
        return None
    rows = _ELECTED.refused(body.topic_partitions or (), FORBIDDEN_CLUSTER)
    return elect_api.ElectLeadersResponse(error_code=FORBIDDEN_CLUSTER, replica_election_results=rows)


def alter_partition_reassignments(
    node: Any, access: Access, request: Request, body: reassign_api.AlterPartitionReassignmentsRequest
) -> Any:
    if access.cluster():
        return None
    return reassign_api.AlterPartitionReassignmentsResponse(
        error_code=FORBIDDEN_CLUSTER,
        error_message=CLUSTER_WORDS,
        responses=_REASSIGNED.refused(body.topics, FORBIDDEN_CLUSTER),
    )


def list_partition_reassignments(
    node: Any, access: Access, request: Request, body: list_api.ListPartitionReassignmentsRequest
) -> Any:
    if access.cluster():
        return None
    return list_api.ListPartitionReassignmentsResponse(
        error_code=FORBIDDEN_CLUSTER,
        error_message=CLUSTER_WORDS,
        topics=_LISTED.refused(body.topics or (), FORBIDDEN_CLUSTER),
    )


def alter_replica_log_dirs(
    node: Any, access: Access, request: Request, body: dirs_api.AlterReplicaLogDirsRequest
) -> Any:
    if access.cluster():
        return None
    topics = [topic for directory in body.dirs for topic in directory.topics]
    return dirs_api.AlterReplicaLogDirsResponse(results=_MOVED.refused(topics, FORBIDDEN_CLUSTER))


def create_acls(node: Any, access: Access, request: Request, body: create_acls_api.CreateAclsRequest) -> Any:
    if access.cluster():
        return None
    row = create_acls_api.AclCreationResult(FORBIDDEN_CLUSTER, CLUSTER_WORDS)
    return create_acls_api.CreateAclsResponse(results=[row for _ in body.creations])


def delete_acls(node: Any, access: Access, request: Request, body: delete_acls_api.DeleteAclsRequest) -> Any:
    if access.cluster():
        return None
    row = delete_acls_api.DeleteAclsFilterResult(FORBIDDEN_CLUSTER, CLUSTER_WORDS)
    return delete_acls_api.DeleteAclsResponse(filter_results=[row for _ in body.filters])


def describe_client_quotas(node: Any, access: Access, request: Request, body: object) -> Any:
    if access.cluster():
        return None
    return describe_quotas_api.DescribeClientQuotasResponse(
        error_code=FORBIDDEN_CLUSTER, error_message=CLUSTER_WORDS, entries=None
    )


def alter_client_quotas(
    node: Any, access: Access, request: Request, body: quotas_api.AlterClientQuotasRequest
) -> Any:
    if access.cluster():
        return None
    rows = [
        quotas_api.ResponseEntryData(FORBIDDEN_CLUSTER, CLUSTER_WORDS, entry.entity) for entry in body.entries
    ]
    return quotas_api.AlterClientQuotasResponse(entries=rows)


def alter_user_scram_credentials(
    node: Any, access: Access, request: Request, body: scram_api.AlterUserScramCredentialsRequest
) -> Any:
    """Only the controller looks at rights."""
    if not node.controller.is_active or access.cluster():
        return None
    users = dict.fromkeys([*(each.name for each in body.deletions), *(each.name for each in body.upsertions)])
    rows = [
        scram_api.AlterUserScramCredentialsResult(user, FORBIDDEN_CLUSTER, CLUSTER_WORDS) for user in users
    ]
    return scram_api.AlterUserScramCredentialsResponse(results=rows)


def describe_user_scram_credentials(
    node: Any, access: Access, request: Request, body: describe_scram_api.DescribeUserScramCredentialsRequest
) -> Any:
    """The rows name nobody, as in Kafka; asked for all users it gives no answer at all, and this does."""
    if access.cluster():
        return None
    response = refused(request, FORBIDDEN_CLUSTER)
    response.results = [
        describe_scram_api.DescribeUserScramCredentialsResult("", FORBIDDEN_CLUSTER, CLUSTER_WORDS)
        for _ in body.users or ()
    ]
    return response
