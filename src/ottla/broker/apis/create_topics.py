"""CreateTopics 0-7: the active controller writes the topics' znodes and waits until they have leaders."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.config_entries import ConfigRows
from ottla.broker.controller_steps import Fence
from ottla.broker.request import Request
from ottla.broker.topic_requests import TopicPlan, TopicRefused, plan_topic
from ottla.broker.topic_writer import topics_beside, why_taken, write_topic
from ottla.broker.zk_desk import Steps
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


def handle(node: "Node", request: Request, body: CreateTopicsRequest) -> CreateTopicsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    term = node.controller.term
    if term is None:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, "") for topic in body.topics]
        return CreateTopicsResponse(topics=rows)
    outcomes = _judge(node, body.topics)
    if body.validate_only:
        node.zk.run(
            _look_up_all(outcomes), lambda judged: request.reply(_response(node, judged, frozenset()))
        )
    else:
        node.zk.run(
            _write_all(node, term.fence, outcomes),
            lambda written: _wait(node, request, written, body.timeout_ms),
        )
    return None


def _judge(node: "Node", topics: list[CreatableTopic]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for topic in topics:
        if topic.name in outcomes:
            outcomes[topic.name] = TopicRefused(
                ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic."
            )
        else:
            outcomes[topic.name] = plan_topic(node, topic)
    return outcomes


def _look_up_all(outcomes: Mapping[str, Outcome]) -> Steps[dict[str, Outcome]]:
    judged: dict[str, Outcome] = {}
    beside = yield from topics_beside(outcomes)
    for name, plan in outcomes.items():
        taken = (yield from why_taken(name, beside)) if isinstance(plan, TopicPlan) else None
        judged[name] = taken or plan
    return judged


def _write_all(node: "Node", fence: Fence, outcomes: Mapping[str, Outcome]) -> Steps[dict[str, Outcome]]:
    """One after the other; each new topic stands beside the next ones."""
    written: dict[str, Outcome] = {}
    beside = yield from topics_beside(outcomes)
    for name, plan in outcomes.items():
        written[name] = plan
        if isinstance(plan, TopicPlan):
            written[name] = yield from write_topic(node, plan, beside, fence)
        if isinstance(written[name], TopicPlan):
            beside.add(name)
    return written


def _wait(node: "Node", request: Request, outcomes: dict[str, Outcome], timeout_ms: int) -> None:
    plans = [outcome for outcome in outcomes.values() if isinstance(outcome, TopicPlan)]

    def all_led() -> bool:
        return all(_is_led(node, plan) for plan in plans)

    def then(in_time: bool) -> None:
        late = frozenset() if in_time else frozenset(p.name for p in plans if not _is_led(node, p))
        if timeout_ms <= 0:
            late = frozenset(plan.name for plan in plans)
        request.reply(_response(node, outcomes, late))

    if timeout_ms <= 0:
        then(False)
    else:
        node.controller.waits.wait(all_led, timeout_ms, then)


def _is_led(node: "Node", plan: TopicPlan) -> bool:
    topic = node.metadata.topics.get(plan.name)
    if topic is None or len(topic.partitions) < len(plan.placement):
        return False
    return all(info.leader != NO_LEADER for info in topic.partitions.values())


def _response(node: "Node", outcomes: dict[str, Outcome], late: frozenset[str]) -> CreateTopicsResponse:
    rows = []
    settings = ConfigRows(node)
    for name, outcome in outcomes.items():
        if isinstance(outcome, TopicRefused):
            rows.append(_row(name, outcome.error, outcome.why))
        elif name in late:
            row = _row(name, ErrorCode.REQUEST_TIMED_OUT, None)
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
