"""CreatePartitions 0-3: the controller adds partitions; the answer waits until they have leaders."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ottla.broker.clients.request import Request
from ottla.broker.topics.writer import FENCED, OVER_QUOTA
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


STRICT_SINCE = 3
"""Clients of older versions do not know the refusal: their partitions are added, and they wait afterwards."""

Results: TypeAlias = Mapping[str, Refusal]
Then: TypeAlias = Callable[[Results], None]


def handle(node: "Node", request: Request, body: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    if not node.controller.is_active:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, None) for topic in body.topics]
        return CreatePartitionsResponse(results=rows)
    wanted = tuple(PartitionsWanted(topic.name, topic.count, _by_hand(topic)) for topic in body.topics)

    def ask(topics: tuple[PartitionsWanted, ...], validate_only: bool, then: Then) -> None:
        def make_event(token: Token) -> PartitionsRequested:
            rule = PlacementRule(node.config.controller.ottla_replica_placement)
            return PartitionsRequested(token, topics, validate_only, rule)

        def answered(result: Result | None) -> None:
            if isinstance(result, PartitionsAdded):
                then(result.results)
            else:
                rows = [_row(name, *FENCED) for name in dict.fromkeys(topic.name for topic in body.topics)]
                request.reply(CreatePartitionsResponse(results=rows))

        node.controller.ask(make_event, answered, request)

    def charge(results: Results) -> None:
        """The request is sound: add what the client's quota of mutations allows."""
        counts = {topic.name: topic.count for topic in body.topics}
        refused = {
            name: OVER_QUOTA
            for name, result in results.items()
            if result.error is ErrorCode.NONE
            and not node.client_quotas.may_mutate(request, counts[name] - _count(node, name), is_strict)
        }
        allowed = tuple(topic for topic in wanted if topic.name not in refused)
        ask(allowed, False, lambda added: _wait(node, request, body, {**added, **refused}))

    is_strict = request.api_version >= STRICT_SINCE
    if node.client_quotas.mutations and not body.validate_only:
        ask(wanted, True, charge)
    else:
        ask(wanted, body.validate_only, lambda added: _wait(node, request, body, added))
    return None


def _count(node: "Node", topic: str) -> int:
    known = node.metadata.topics.get(topic)
    return 0 if known is None else len(known.partitions)


def _by_hand(topic: CreatePartitionsTopic) -> tuple[tuple[BrokerId, ...], ...] | None:
    if topic.assignments is None:
        return None
    return tuple(tuple(map(BrokerId, row.broker_ids)) for row in topic.assignments)


def _row(name: str, error: ErrorCode, why: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=why)


def _wait(node: "Node", request: Request, body: CreatePartitionsRequest, results: Results) -> None:
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
