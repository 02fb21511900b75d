"""AlterPartition 0-3: a leader asks the controller for another ISR."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.controller.effects import IsrsAltered, Result
from ottla.controller.events import AlterPartitionRequested, IsrChange, Token
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState
from ottla.wire.apis.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)

Row = tuple[ErrorCode, LeaderAndIsr | None]


def handle(node: Node, request: Request, body: AlterPartitionRequest) -> AlterPartitionResponse | None:
    """The controller judges each partition; topics it does not know are refused here."""
    if not node.controller.is_active:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    by_name = request.api_version < 2
    topics = [
        (topic, topic.topic_name if by_name else node.controller.topic_name(TopicId(topic.topic_id)))
        for topic in body.topics
    ]
    if not node.controller.is_serving and any(name is None for _, name in topics):
        # A leader believes in an unknown topic and waits for its end; this one is only not read yet.
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        changes = tuple(
            _change(request, name, row)
            for topic, name in topics
            if name is not None
            for row in topic.partitions
        )
    except ValueError:
        return AlterPartitionResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)

    def make_event(token: Token) -> AlterPartitionRequested:
        cause = f"AlterPartition by broker {body.broker_id}"
        return AlterPartitionRequested(token, BrokerId(body.broker_id), body.broker_epoch, changes, cause)

    def then(result: Result | None) -> None:
        if not isinstance(result, IsrsAltered):
            request.reply(AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER))
        elif result.error is not ErrorCode.NONE:
            request.reply(AlterPartitionResponse(error_code=result.error))
        else:
            rows = {key: (error, state) for key, error, state in result.results}
            request.reply(_response(request, topics, rows))

    node.controller.ask(make_event, then, request)
    return None


def _change(request: Request, topic: str, row: RequestPartitionData) -> IsrChange:
    if request.api_version >= 3:
        isr = tuple(BrokerId(member.broker_id) for member in row.new_isr_with_epochs)
        epochs = tuple(member.broker_epoch for member in row.new_isr_with_epochs)
    else:
        isr = tuple(BrokerId(member) for member in row.new_isr)
        epochs = (-1,) * len(isr)
    return IsrChange(
        TopicPartition(topic, row.partition_index),
        LeaderEpoch(row.leader_epoch),
        row.partition_epoch,
        isr,
        epochs,
        LeaderRecoveryState(row.leader_recovery_state),
    )


def _response(
    request: Request, topics: list[tuple[RequestTopicData, str | None]], rows: dict[TopicPartition, Row]
) -> AlterPartitionResponse:
    answered = []
    for topic, name in topics:
        partitions = []
        for asked in topic.partitions:
            unknown: Row = (ErrorCode.UNKNOWN_TOPIC_ID, None)
            found = unknown if name is None else rows[TopicPartition(name, asked.partition_index)]
            partitions.append(_row(request, asked.partition_index, *found))
        answered.append(
            ResponseTopicData(topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=partitions)
        )
    return AlterPartitionResponse(topics=answered)


def _row(request: Request, index: int, error: ErrorCode, state: LeaderAndIsr | None) -> ResponsePartitionData:
    if error is ErrorCode.INELIGIBLE_REPLICA and request.api_version < 2:
        error = ErrorCode.OPERATION_NOT_ATTEMPTED
    if state is None:
        return ResponsePartitionData(partition_index=index, error_code=error)
    return ResponsePartitionData(
        partition_index=index,
        error_code=error,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )
