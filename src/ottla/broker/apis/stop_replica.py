"""StopReplica 0-4: the controller says which replicas to stop, and which of those to delete."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.fences import fence
from ottla.broker.partitions import NO_LEADER_EPOCH
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)


def handle(node: "Node", request: Request, body: StopReplicaRequest) -> StopReplicaResponse:
    """Stop each one, unless a fence stops the whole request."""
    error = fence(node, body.controller_epoch, body.broker_epoch, body.is_kraft_controller)
    if error is not ErrorCode.NONE:
        log.warning("stop replica refused error=%s controller=%d", error.name, body.controller_id)
        return StopReplicaResponse(error_code=int(error), partition_errors=[])
    results = [
        StopReplicaPartitionError(
            topic_name=name.topic,
            partition_index=name.partition,
            error_code=int(node.partitions.stop_replica(name, leader_epoch, delete=delete)),
        )
        for name, leader_epoch, delete in _replicas(body)
    ]
    node.partitions.fetchers.close_idle()
    return StopReplicaResponse(error_code=0, partition_errors=results)


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
