"""ListPartitionReassignments 0: which partitions are on their way to other brokers."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.controller.effects import ReassignmentsUnderWay, Result
from ottla.controller.events import ReassignmentsListed, Token
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(node: Node, request: Request, body: ListPartitionReassignmentsRequest) -> None:
    """Null means all that are under way."""
    partitions: tuple[TopicPartition, ...] | None = None
    if body.topics is not None:
        partitions = tuple(
            TopicPartition(topic.name, index) for topic in body.topics for index in topic.partition_indexes
        )

    def make_event(token: Token) -> ReassignmentsListed:
        return ReassignmentsListed(token, partitions)

    def then(result: Result | None) -> None:
        if not isinstance(result, ReassignmentsUnderWay):
            request.reply(
                ListPartitionReassignmentsResponse(
                    error_code=ErrorCode.NOT_CONTROLLER,
                    error_message="This is not the correct controller for this cluster.",
                )
            )
            return
        request.reply(_response(result))

    node.controller.ask(make_event, then, request)


def _response(result: ReassignmentsUnderWay) -> ListPartitionReassignmentsResponse:
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for (topic, index), assignment in result.assignments.items():
        topics.setdefault(topic, []).append(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=assignment.replicas,
                adding_replicas=assignment.adding,
                removing_replicas=assignment.removing,
            )
        )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(name=topic, partitions=rows) for topic, rows in topics.items()],
    )
