"""Settings of topics and brokers, described and altered. A broker's own settings are asked of that broker."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from ottla.client.admin.asking import ask_target
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import ANY_BROKER, Operation, Target
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
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
        results += response.responses
    return results


def _by_target(resources: Iterable[Resource]) -> dict[Target, list[Resource]]:
    """Resources by the broker that must be asked for them."""
    grouped: dict[Target, list[Resource]] = {}
    for kind, name in resources:
        is_one_broker = kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name != ""
        grouped.setdefault(int(name) if is_one_broker else ANY_BROKER, []).append((kind, name))
    return grouped
