"""ControlledShutdown 0-3: a broker that wants to leave asks the controller to take over what it leads."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.controller.effects import Result, ShutdownAnswered
from ottla.controller.events import ControlledShutdownRequested, Token
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.wire.apis.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


def handle(node: Node, request: Request, body: ControlledShutdownRequest) -> None:
    """Answered with what the broker still leads."""

    def make_event(token: Token) -> ControlledShutdownRequested:
        cause = f"controlled shutdown of broker {body.broker_id}"
        return ControlledShutdownRequested(token, BrokerId(body.broker_id), body.broker_epoch, cause)

    def then(result: Result | None) -> None:
        if not isinstance(result, ShutdownAnswered):
            request.reply(ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH))
            return
        remaining = [
            RemainingPartition(topic_name=topic, partition_index=index) for topic, index in result.remaining
        ]
        request.reply(ControlledShutdownResponse(error_code=result.error, remaining_partitions=remaining))

    node.controller.ask(make_event, then, request)
