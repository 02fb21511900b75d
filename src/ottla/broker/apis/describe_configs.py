"""DescribeConfigs 0-4: the settings of topics and of this broker, their sources, synonyms and meaning."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker import topic_names
from ottla.broker.config_entries import ConfigRows, Row
from ottla.broker.config_resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    MALFORMED,
    TOPIC,
    InvalidResource,
    check_broker_name,
)
from ottla.broker.encoded_lists import frame_with_items, only_item
from ottla.broker.logger_levels import logger_rows
from ottla.broker.portions import in_portions
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: DescribeConfigsRequest) -> None:
    """Settings are read anew: whoever changed them, here or elsewhere, shall find what was just written."""
    kinds = {resource.resource_type for resource in body.resources}
    named = {resource.resource_name for resource in body.resources if resource.resource_type == TOPIC}
    topics = named & node.metadata.topics.keys()
    if topics or BROKER in kinds:
        node.configs.refresh(topics, BROKER in kinds, lambda: _answer(node, request, body))
    else:
        _answer(node, request, body)


def _answer(node: "Node", request: Request, body: DescribeConfigsRequest) -> None:
    """Ten thousand topics are many megabytes: they are brought together and encoded a portion at a time."""
    results: list[bytes] = []
    tail_size = 1 if DescribeConfigsResponse.spec.is_flexible(request.api_version) else 0

    def encode() -> Iterator[None]:
        for result in _results(node, body):
            one = DescribeConfigsResponse(results=[result])
            results.append(only_item(DescribeConfigsResponse(), one, request.api_version, tail_size))
            yield

    def reply() -> None:
        empty = DescribeConfigsResponse()
        request.reply_encoded(
            frame_with_items(empty, request.api_version, request.correlation_id, results, tail_size)
        )

    in_portions(node, request, encode(), reply)


def _results(node: "Node", body: DescribeConfigsRequest) -> Iterator[DescribeConfigsResult]:
    """One result a resource; a resource that cannot be described says why."""
    rows = ConfigRows(
        node, with_synonyms=body.include_synonyms, with_documentation=body.include_documentation
    )
    for resource in body.resources:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            result.configs = _rows(node, rows, resource)
        except InvalidResource as invalid:
            result.error_code, result.error_message = invalid.code, invalid.message
        yield result


def _rows(node: "Node", rows: ConfigRows, resource: DescribeConfigsResource) -> list[Row]:
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
        check_broker_name(node, resource.resource_name)
        return rows.of_broker(names)
    if resource.resource_type == BROKER_LOGGER:
        check_broker_name(node, resource.resource_name)
        return logger_rows(names)
    if resource.resource_type == CLIENT_METRICS:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters"
        )
    raise InvalidResource(ErrorCode.INVALID_REQUEST, MALFORMED)
