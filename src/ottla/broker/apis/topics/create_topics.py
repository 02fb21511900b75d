"""CreateTopics 0-7: the controller creates the topics; the answer waits until they have leaders."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ottla.broker.clients.request import Request
from ottla.broker.settings.entries import ConfigRows
from ottla.broker.topics.writer import FENCED, OVER_QUOTA, draw_topic_id
from ottla.controller.effects import NewTopic, Result, TopicsCreated
from ottla.controller.events import Token, TopicCreationRequested, TopicWanted
from ottla.controller.placement import PlacementRule
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId
from ottla.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

INT16_MAX = 2**15 - 1
STRICT_SINCE = 6
"""Clients of older versions do not know the refusal: their topics are created, and they wait afterwards."""
LOT_MAX = 2**31

Results: TypeAlias = Mapping[str, NewTopic | Refusal]
Then: TypeAlias = Callable[[Results], None]


def handle(node: "Node", request: Request, body: CreateTopicsRequest) -> CreateTopicsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    if not node.controller.is_active:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, "") for topic in body.topics]
        return CreateTopicsResponse(topics=rows)
    wanted = tuple(_wanted(node, topic) for topic in body.topics)

    def ask(topics: tuple[TopicWanted, ...], validate_only: bool, then: Then) -> None:
        def make_event(token: Token) -> TopicCreationRequested:
            config = node.config
            rule = PlacementRule(config.controller.ottla_replica_placement)
            return TopicCreationRequested(token, topics, validate_only, config.topics, config.log, rule)

        def answered(result: Result | None) -> None:
            if isinstance(result, TopicsCreated):
                then(result.results)
            else:
                rows = [_row(topic.name, *FENCED) for topic in body.topics]
                request.reply(CreateTopicsResponse(topics=rows))

        node.controller.ask(make_event, answered, request)

    def charge(results: Results) -> None:
        """The topics are sound: create those that the client's quota of mutations allows."""
        refused = {
            name: OVER_QUOTA
            for name, result in results.items()
            if isinstance(result, NewTopic)
            and not node.client_quotas.may_mutate(request, len(result.partitions), is_strict)
        }
        allowed = tuple(topic for topic in wanted if topic.name not in refused)
        ask(allowed, False, lambda made: _wait(node, request, body, {**made, **refused}))

    is_strict = request.api_version >= STRICT_SINCE
    if node.client_quotas.mutations and not body.validate_only:
        ask(wanted, True, charge)
    else:
        ask(wanted, body.validate_only, lambda made: _wait(node, request, body, made))
    return None


def _wanted(node: "Node", topic: CreatableTopic) -> TopicWanted:
    return TopicWanted(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((row.partition_index, tuple(map(BrokerId, row.broker_ids))) for row in topic.assignments),
        tuple((config.name, config.value) for config in topic.configs),
        draw_topic_id(node.random),
        node.random.randrange(LOT_MAX),
        node.random.randrange(LOT_MAX),
    )


def _wait(node: "Node", request: Request, body: CreateTopicsRequest, results: Results) -> None:
    made = {name: topic for name, topic in results.items() if isinstance(topic, NewTopic)}
    if body.validate_only:
        made = {}

    def all_led() -> bool:
        return all(node.metadata.is_led(name, len(topic.partitions)) for name, topic in made.items())

    def then(in_time: bool) -> None:
        waiting = {} if in_time else made
        late = [n for n, topic in waiting.items() if not node.metadata.is_led(n, len(topic.partitions))]
        request.reply(_response(node, body, results, late))

    if body.timeout_ms <= 0:
        request.reply(_response(node, body, results, made))
    else:
        node.metadata_waits.wait(all_led, body.timeout_ms, then)


def _response(
    node: "Node", body: CreateTopicsRequest, results: Results, late: Collection[str]
) -> CreateTopicsResponse:
    """A row for every entry of the request."""
    rows = []
    settings = ConfigRows(node.configs, node.broker_id)
    for topic in body.topics:
        result = results[topic.name]
        if isinstance(result, Refusal):
            row = _row(topic.name, *result)
        elif topic.name in late:
            row = _row(topic.name, ErrorCode.REQUEST_TIMED_OUT, None)
        else:
            row = _row(topic.name, ErrorCode.NONE, None)
            row.num_partitions = len(result.partitions)
            # Who places by hand may name more brokers than an answer can tell.
            row.replication_factor = min(len(next(iter(result.partitions.values())).replicas), INT16_MAX)
            row.configs = _configs(settings, result)
        if isinstance(result, NewTopic) and not body.validate_only:
            row.topic_id = result.topic_id
        rows.append(row)
    return CreateTopicsResponse(topics=rows)


def _row(name: str, error: ErrorCode, why: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=why)


def _configs(settings: ConfigRows, topic: NewTopic) -> list[CreatableTopicConfigs]:
    """The topic's settings as they will hold; its overrides are perhaps not known to this broker yet."""
    return [
        CreatableTopicConfigs(
            name=row.name,
            value=row.value,
            read_only=row.read_only,
            config_source=row.config_source,
            is_sensitive=row.is_sensitive,
        )
        for row in settings.of_topic(topic.settings)
    ]
