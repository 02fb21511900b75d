"""AlterPartitionReassignments 0: the controller moves partitions to other brokers, or stops (KIP-455)."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.controller.effects import ReassignmentsTaken, Result
from ottla.controller.events import ReassignmentRequested, Token
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicPartition
from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(node: Node, request: Request, body: AlterPartitionReassignmentsRequest) -> None:
    """Answered when the plans stand in ZooKeeper; the moving itself takes its time.

    Of a partition named twice the last word counts.
    """
    targets: dict[TopicPartition, tuple[BrokerId, ...] | None] = {}
    for topic in body.topics:
        for row in topic.partitions:
            replicas = None if row.replicas is None else tuple(BrokerId(b) for b in row.replicas)
            targets[TopicPartition(topic.name, row.partition_index)] = replicas

    def make_event(token: Token) -> ReassignmentRequested:
        return ReassignmentRequested(token, targets)

    def then(result: Result | None) -> None:
        if not isinstance(result, ReassignmentsTaken):
            request.reply(
                AlterPartitionReassignmentsResponse(
                    error_code=ErrorCode.NOT_CONTROLLER,
                    error_message="This is not the correct controller for this cluster.",
                )
            )
            return
        topics: dict[str, list[ReassignablePartitionResponse]] = {}
        for name in targets:
            topics.setdefault(name.topic, []).append(_row(name.partition, result.results[name]))
        rows = [ReassignableTopicResponse(name=name, partitions=each) for name, each in topics.items()]
        request.reply(AlterPartitionReassignmentsResponse(error_message="", responses=rows))

    node.controller.ask(make_event, then, request)


def _row(index: int, refusal: Refusal) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=index, error_code=refusal.error, error_message=refusal.why
    )
