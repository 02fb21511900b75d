"""CreateTopics 0-7: the active controller writes the topics' znodes and waits until they have leaders."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.config_entries import ConfigRows
from ottla.broker.controller_steps import Fence
from ottla.broker.request import Request
from ottla.broker.topic_names import CLUSTER_METADATA_TOPIC, NamesAlike
from ottla.broker.topic_requests import TopicPlan, TopicRefused, plan_topic
from ottla.broker.topic_writer import topics_beside, why_taken, write_topic
from ottla.broker.zk_desk import Pause, Steps
from ottla.controller.placement import PARTITIONS_MAX
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_LEADER, ZERO_TOPIC_ID
from ottla.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

Outcome = TopicPlan | TopicRefused

TOPICS_A_TURN = 100
"""How many topics are judged before others get their turn."""


def handle(node: "Node", request: Request, body: CreateTopicsRequest) -> CreateTopicsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    term = node.controller.term
    if term is None:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, "") for topic in body.topics]
        return CreateTopicsResponse(topics=rows)
    node.zk.run(
        _create_all(node, term.fence, body),
        lambda outcomes: _wait(node, request, body, outcomes),
    )
    return None


def _named(topics: Iterable[CreatableTopic]) -> dict[str, CreatableTopic | TopicRefused]:
    """The topics by their names, except those whose names alone are no wish that can be fulfilled."""
    named: dict[str, CreatableTopic | TopicRefused] = {}
    for topic in topics:
        if topic.name == CLUSTER_METADATA_TOPIC:
            why = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            named[topic.name] = TopicRefused(ErrorCode.INVALID_REQUEST, why)
        elif topic.name in named:
            why = "Found multiple entries for this topic."
            named[topic.name] = TopicRefused(ErrorCode.INVALID_REQUEST, why)
        else:
            named[topic.name] = topic
    return named


def _create_all(node: "Node", fence: Fence, body: CreateTopicsRequest) -> Steps[dict[str, Outcome]]:
    """One after the other, and some a turn; each new topic stands beside the next ones."""
    outcomes: dict[str, Outcome] = {}
    named = _named(body.topics)
    beside = yield from topics_beside(named)
    room = PARTITIONS_MAX
    for name, topic in named.items():
        if isinstance(topic, TopicRefused):
            outcome: Outcome = topic
        else:
            outcome = yield from _create(node, fence, topic, beside, room, body.validate_only)
        if isinstance(outcome, TopicPlan):
            room -= len(outcome.placement)
            if not body.validate_only:
                beside.add(name)
        outcomes[name] = outcome
        if len(outcomes) % TOPICS_A_TURN == 0:
            yield Pause(0)
    return outcomes


def _create(
    node: "Node", fence: Fence, topic: CreatableTopic, beside: NamesAlike, room: int, validate_only: bool
) -> Steps[Outcome]:
    plan = yield from plan_topic(node, topic, beside, room)
    if isinstance(plan, TopicRefused):
        return plan
    if validate_only:
        return (yield from why_taken(topic.name, beside)) or plan
    return (yield from write_topic(node, plan, beside, fence))


def _wait(node: "Node", request: Request, body: CreateTopicsRequest, outcomes: Mapping[str, Outcome]) -> None:
    made = [] if body.validate_only else [each for each in outcomes.values() if isinstance(each, TopicPlan)]

    def all_led() -> bool:
        return all(_is_led(node, plan) for plan in made)

    def then(in_time: bool) -> None:
        late = frozenset() if in_time else frozenset(p.name for p in made if not _is_led(node, p))
        if body.timeout_ms <= 0:
            late = frozenset(plan.name for plan in made)
        request.reply(_response(node, body.topics, outcomes, late))

    if body.timeout_ms <= 0:
        then(False)
    else:
        node.controller.waits.wait(all_led, body.timeout_ms, then)


def _is_led(node: "Node", plan: TopicPlan) -> bool:
    topic = node.metadata.topics.get(plan.name)
    if topic is None or len(topic.partitions) < len(plan.placement):
        return False
    return all(info.leader != NO_LEADER for info in topic.partitions.values())


def _response(
    node: "Node", topics: Iterable[CreatableTopic], outcomes: Mapping[str, Outcome], late: frozenset[str]
) -> CreateTopicsResponse:
    """A row for every entry of the request."""
    rows = []
    settings = ConfigRows(node)
    for topic in topics:
        outcome = outcomes[topic.name]
        if isinstance(outcome, TopicRefused):
            rows.append(_row(topic.name, outcome.error, outcome.why))
        elif topic.name in late:
            row = _row(topic.name, ErrorCode.REQUEST_TIMED_OUT, None)
            row.topic_id = outcome.topic_id or ZERO_TOPIC_ID
            rows.append(row)
        else:
            rows.append(_created(settings, outcome))
    return CreateTopicsResponse(topics=rows)


def _row(name: str, error: ErrorCode, why: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error, error_message=why)


def _created(settings: ConfigRows, plan: TopicPlan) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=plan.name,
        topic_id=plan.topic_id or ZERO_TOPIC_ID,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(plan.placement),
        replication_factor=plan.replication_factor,
        configs=_configs(settings, plan),
    )


def _configs(settings: ConfigRows, plan: TopicPlan) -> list[CreatableTopicConfigs]:
    """The topic's settings as they will hold; its overrides are perhaps not known to this broker yet."""
    return [
        CreatableTopicConfigs(
            name=row.name,
            value=row.value,
            read_only=row.read_only,
            config_source=row.config_source,
            is_sensitive=row.is_sensitive,
        )
        for row in settings.of_topic(plan.overrides)
    ]
