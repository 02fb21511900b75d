"""StopReplica 0-4: the controller says which replicas to stop, and which of those to delete."""

import logging
from collections.abc import Iterator

from ottla.broker.apis.control.fences import fence
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.hosted import NO_LEADER_EPOCH
from ottla.broker.runtime.tasks import BREATH, Steps
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse

log = logging.getLogger(__name__)


def handle(node: Node, request: Request, body: StopReplicaRequest) -> None:
    """Stop each one, after what the controller asked for before."""
    node.control_requests.put(_obey(node, request, body), request)


def _obey(node: Node, request: Request, body: StopReplicaRequest) -> Steps[None]:
    """A fence may stop the whole request."""
    error = fence(node, body.controller_epoch, body.broker_epoch, body.is_kraft_controller)
    if error is not ErrorCode.NONE:
        log.warning("stop replica refused error=%s controller=%d", error.name, body.controller_id)
        request.reply(StopReplicaResponse(error_code=int(error), partition_errors=[]))
        return
    results: list[StopReplicaPartitionError] = []
    deleted = 0
    for name, leader_epoch, delete in _replicas(body):
        code = node.partitions.stop_replica(name, leader_epoch, delete=delete)
        deleted += delete and code is ErrorCode.NONE
        results.append(
            StopReplicaPartitionError(
                topic_name=name.topic, partition_index=name.partition, error_code=int(code)
            )
        )
        yield BREATH
    node.fetchers.close_idle()
    log.info(
        "stop replica controller=%d epoch=%d partitions=%d deleted=%d",
        body.controller_id,
        body.controller_epoch,
        len(results),
        deleted,
    )
    request.reply(StopReplicaResponse(error_code=0, partition_errors=results))


def _replicas(body: StopReplicaRequest) -> Iterator[tuple[TopicPartition, int, bool]]:
    """The replicas in all the shapes that versions gave the request."""
    for old in body.ungrouped_partitions:
        yield TopicPartition(old.topic_name, old.partition_index), NO_LEADER_EPOCH, body.delete_partitions
    for topic in body.topics:
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index), NO_LEADER_EPOCH, body.delete_partitions
    for states in body.topic_states:
        for state in states.partition_states:
            name = TopicPartition(states.topic_name, state.partition_index)
            yield name, state.leader_epoch, state.delete_partition
