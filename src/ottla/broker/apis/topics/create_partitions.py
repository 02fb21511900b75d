"""CreatePartitions 0-3: the controller adds partitions; the answer waits until they have leaders."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.clients.request import Request
from ottla.broker.topics.writer import FENCED
from ottla.controller.effects import PartitionsAdded, Result
from ottla.controller.events import PartitionsRequested, PartitionsWanted, Token
from ottla.controller.placement import PlacementRule
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId
from ottla.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    if not node.controller.is_active:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, None) for topic in body.topics]
        return CreatePartitionsResponse(results=rows)
    wanted = tuple(PartitionsWanted(topic.name, topic.count, _by_hand(topic)) for topic in body.topics)

    def make_event(token: Token) -> PartitionsRequested:
        rule = PlacementRule(node.config.controller.ottla_replica_placement)
        return PartitionsRequested(token, wanted, body.validate_only, rule)

    def then(result: Result | None) -> None:
        if isinstance(result, PartitionsAdded):
            _wait(node, request, body, result.results)
        else:
            rows = [_row(name, *FENCED) for name in dict.fromkeys(topic.name for topic in body.topics)]
            request.reply(CreatePartitionsResponse(results=rows))

    node.controller.ask(make_event, then, request)
    return None


def _by_hand(topic: CreatePartitionsTopic) -> tuple[tuple[BrokerId, ...], ...] | None:
    if topic.assignments is None:
        return None
    return tuple(tuple(map(BrokerId, row.broker_ids)) for row in topic.assignments)


def _row(name: str, error: ErrorCode, why: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=why)


def _wait(
    node: "Node", request: Request, body: CreatePartitionsRequest, results: Mapping[str, Refusal]
) -> None:
    """A row for every name, in the order of the request."""
    rows = {name: _row(name, *result) for name, result in results.items()}
    grown = [topic for topic in body.topics if results[topic.name].error is ErrorCode.NONE]

    def all_led() -> bool:
        return body.validate_only or all(node.metadata.is_led(topic.name, topic.count) for topic in grown)

    def then(in_time: bool) -> None:
        for topic in grown:
            if not in_time and not node.metadata.is_led(topic.name, topic.count):
                rows[topic.name].error_code = ErrorCode.REQUEST_TIMED_OUT
        request.reply(CreatePartitionsResponse(results=list(rows.values())))

    node.metadata_waits.wait(all_led, body.timeout_ms, then)
