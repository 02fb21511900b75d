"""DescribeConfigs 0-4: the settings of topics and of this broker, their sources, synonyms and meaning."""

from typing import TYPE_CHECKING

from ottla.broker import topic_names
from ottla.broker.config_entries import (
    Entry,
    broker_entries,
    default_broker_entries,
    logger_entries,
    topic_entries,
)
from ottla.broker.config_resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    MALFORMED,
    TOPIC,
    InvalidResource,
    check_broker_name,
)
from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: DescribeConfigsRequest) -> DescribeConfigsResponse | None:
    """Settings are read anew: whoever changed them, here or elsewhere, shall find what was just written."""
    kinds = {resource.resource_type for resource in body.resources}
    named = {resource.resource_name for resource in body.resources if resource.resource_type == TOPIC}
    topics = named & node.metadata.topics.keys()
    if not topics and BROKER not in kinds:
        return _describe(node, body)
    node.configs.refresh(topics, BROKER in kinds, lambda: request.reply(_describe(node, body)))
    return None


def _describe(node: "Node", body: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """One result a resource; a resource that cannot be described says why."""
    results = []
    for resource in body.resources:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            entries = _entries(node, resource)
        except InvalidResource as invalid:
            result.error_code, result.error_message = invalid.code, invalid.message
        else:
            result.configs = [
                _row(entry, body.include_synonyms, body.include_documentation) for entry in entries
            ]
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _entries(node: "Node", resource: DescribeConfigsResource) -> list[Entry]:
    names = resource.configuration_keys or None
    if resource.resource_type == TOPIC:
        why = topic_names.why_illegal(resource.resource_name)
        if why is not None:
            raise InvalidResource(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
        if resource.resource_name not in node.metadata.topics:
            raise InvalidResource(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return topic_entries(node, resource.resource_name, names)
    if resource.resource_type == BROKER:
        if not resource.resource_name:
            return default_broker_entries(node, names)
        check_broker_name(node, resource.resource_name)
        return broker_entries(node, names)
    if resource.resource_type == BROKER_LOGGER:
        check_broker_name(node, resource.resource_name)
        return logger_entries(names)
    if resource.resource_type == CLIENT_METRICS:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, "Config type client-metrics is only supported on KRaft clusters"
        )
    raise InvalidResource(ErrorCode.INVALID_REQUEST, MALFORMED)


def _row(entry: Entry, with_synonyms: bool, with_documentation: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if with_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.doc if with_documentation else None,
    )
