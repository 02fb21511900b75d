"""DescribeConfigs 0-4: the settings of topics and of this broker, their sources, synonyms and meaning."""

from collections.abc import Iterator

from ottla.broker.apis.guards.rows import CLUSTER_WORDS
from ottla.broker.apis.guards.settings import TOPIC_WORDS, refusal
from ottla.broker.clients.request import Request
from ottla.broker.metadata.encoded_lists import frame_with_items, only_item
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import BREATH, Steps
from ottla.broker.settings.entries import ConfigRows, Row
from ottla.broker.settings.logger_levels import logger_rows
from ottla.broker.settings.resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    MALFORMED,
    TOPIC,
    InvalidResource,
    check_broker_name,
)
from ottla.model import topic_names
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def handle(node: Node, request: Request, body: DescribeConfigsRequest) -> None:
    """Settings are read anew: whoever changed them, here or elsewhere, shall find what was just written."""
    kinds = {resource.resource_type for resource in body.resources}
    named = {resource.resource_name for resource in body.resources if resource.resource_type == TOPIC}
    topics = named & node.metadata.topics.keys()
    node.tasks.spawn(_answer(node, request, body, topics, and_brokers=BROKER in kinds), request)


def _answer(
    node: Node, request: Request, body: DescribeConfigsRequest, topics: set[str], *, and_brokers: bool
) -> Steps[None]:
    """Ten thousand topics are many megabytes: they are brought together and encoded a slice at a time."""
    if topics or and_brokers:
        yield from node.configs.refresh(topics, and_brokers)
    results: list[bytes] = []
    empty = DescribeConfigsResponse()
    tail_size = 1 if empty.spec.is_flexible(request.api_version) else 0
    for result in _results(node, request, body):
        one = DescribeConfigsResponse(results=[result])
        results.append(only_item(empty, one, request.api_version, tail_size))
        yield BREATH
    request.reply_encoded(
        frame_with_items(empty, request.api_version, request.correlation_id, results, tail_size)
    )


def _results(node: Node, request: Request, body: DescribeConfigsRequest) -> Iterator[DescribeConfigsResult]:
    """One result a resource; a resource that cannot be described says why."""
    rows = ConfigRows(
        node.configs,
        node.broker_id,
        with_synonyms=body.include_synonyms,
        with_documentation=body.include_documentation,
    )
    refused: list[DescribeConfigsResult] = []
    for resource in body.resources:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        if request.access is not None and (
            code := refusal(request.access, resource.resource_type, resource.resource_name)
        ):
            result.error_code = code
            result.error_message = TOPIC_WORDS if resource.resource_type == TOPIC else CLUSTER_WORDS
            refused.append(result)
            continue
        try:
            result.configs = _rows(node, rows, resource)
        except InvalidResource as invalid:
            result.error_code, result.error_message = invalid.code, invalid.message
        yield result
    yield from refused


def _rows(node: Node, rows: ConfigRows, resource: DescribeConfigsResource) -> list[Row]:
    names = set(resource.configuration_keys or ()) or None
    if resource.resource_type == TOPIC:
        why = topic_names.why_illegal(resource.resource_name)
        if why is not None:
            raise InvalidResource(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
        if resource.resource_name not in node.metadata.topics:
            raise InvalidResource(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return rows.of_topic(node.configs.topic_overrides(resource.resource_name), names)
    if resource.resource_type == BROKER:
        if not resource.resource_name:
            return rows.of_all_brokers(names)
        check_broker_name(resource.resource_name, node.broker_id)
        return rows.of_broker(names)
    if resource.resource_type == BROKER_LOGGER:
        check_broker_name(resource.resource_name, node.broker_id)
        return logger_rows(names)
    if resource.resource_type == CLIENT_METRICS:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters"
        )
    raise InvalidResource(ErrorCode.INVALID_REQUEST, MALFORMED)
