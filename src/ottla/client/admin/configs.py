"""Settings of topics and brokers, described and altered.

A broker's settings are asked of that broker, a topic's of any broker; if that one does not know the topic,
the controller is asked.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from ottla.client.admin.asking import ask_target, hear_controller, know_brokers
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import ANY_BROKER, Operation, Target
from ottla.model.errors import ErrorCode
from ottla.wire.apis.alter_configs import AlterConfigsResourceResponse
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceType(IntEnum):
    """What has settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigOperation(IntEnum):
    """What is done to a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Resource = tuple[ResourceType, str]
Change = tuple[ConfigOperation, str | None]


def describe_configs(
    engine: Engine,
    resources: Iterable[Resource],
    *,
    keys: Iterable[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    timeout_ms: int | None = None,
) -> Operation[list[DescribeConfigsResult]]:
    """The settings of topics and brokers; one row per resource."""
    names = None if keys is None else tuple(keys)
    results: list[DescribeConfigsResult] = []
    for target, group in _by_target(resources).items():
        rows = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=names)
            for kind, name in group
        ]
        request = DescribeConfigsRequest(
            resources=rows, include_synonyms=include_synonyms, include_documentation=include_documentation
        )
        response = yield from ask_target(engine, target, request, DescribeConfigsResponse, timeout_ms)
        if any(_is_unheard_of(row) for row in response.results):
            yield from know_brokers(engine, timeout_ms)
            controller = engine.metadata.controller_id
            second = yield from hear_controller(engine, controller, request, DescribeConfigsResponse)
            response = response if second is None else second
        results += response.results
    return results


def alter_configs(
    engine: Engine,
    changes: Mapping[Resource, Mapping[str, Change]],
    *,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Operation[list[AlterConfigsResourceResponse]]:
    """Change single settings; one row per resource."""
    results: list[AlterConfigsResourceResponse] = []
    for target, group in _by_target(changes).items():
        rows = [
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, (operation, value) in changes[kind, name].items()
                ],
            )
            for kind, name in group
        ]
        request = IncrementalAlterConfigsRequest(resources=rows, validate_only=validate_only)
        response = yield from ask_target(engine, target, request, IncrementalAlterConfigsResponse, timeout_ms)
        known = [row for row in response.responses if not _is_unheard_of(row)]
        if len(known) < len(response.responses):
            yield from know_brokers(engine, timeout_ms)
            done = {(row.resource_type, row.resource_name) for row in known}
            request.resources = [row for row in rows if (row.resource_type, row.resource_name) not in done]
            controller = engine.metadata.controller_id
            second = yield from hear_controller(engine, controller, request, IncrementalAlterConfigsResponse)
            response.responses = response.responses if second is None else known + second.responses
        results += response.responses
    return results


def _is_unheard_of(row: DescribeConfigsResult | AlterConfigsResourceResponse) -> bool:
    is_topic = row.resource_type == ResourceType.TOPIC
    return is_topic and row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _by_target(resources: Iterable[Resource]) -> dict[Target, list[Resource]]:
    """Resources by the broker to ask for them."""
    grouped: dict[Target, list[Resource]] = {}
    for kind, name in resources:
        is_one_broker = kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name != ""
        grouped.setdefault(int(name) if is_one_broker else ANY_BROKER, []).append((kind, name))
    return grouped
