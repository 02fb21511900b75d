"""What the two Alter APIs share: check each resource, change its overrides, answer for all."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.broker.config_resources import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    InvalidResource,
    check_broker_changes,
    check_broker_name,
    check_topic_changes,
    setting_of,
)
from ottla.broker.config_writer import entity_path, write_overrides
from ottla.broker.logger_levels import change_levels, check_logger_name
from ottla.broker.zk_desk import Steps
from ottla.config.setting import ConfigType, text_of
from ottla.model.errors import ErrorCode
from ottla.wire.apis import incremental_alter_configs

if TYPE_CHECKING:
    from ottla.broker.node import Node


Outcome: TypeAlias = tuple[int, str, int, str | None]
"""Resource type, resource name, error code, error message."""


def change_all(
    node: "Node",
    resources: Sequence[Any],
    change: Callable[[Any, Mapping[str, str]], dict[str, str]],
    validate_only: bool,
    then: Callable[[list[Outcome]], None],
) -> None:
    """Change one resource after the other; each has its own outcome."""
    node.zk.run(_change_all(node, resources, change, validate_only), then)


def _change_all(
    node: "Node",
    resources: Sequence[Any],
    change: Callable[[Any, Mapping[str, str]], dict[str, str]],
    validate_only: bool,
) -> Steps[list[Outcome]]:
    outcomes: list[Outcome] = []
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        refusal: InvalidResource | None
        if counts[kind, name] > 1:
            refusal = InvalidResource(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            refusal = yield from _change_one(node, resource, change, validate_only)
        if refusal is None:
            outcomes.append((kind, name, ErrorCode.NONE, None))
        else:
            outcomes.append((kind, name, refusal.code, refusal.message))
    return outcomes


def _change_one(
    node: "Node",
    resource: Any,
    change: Callable[[Any, Mapping[str, str]], dict[str, str]],
    validate_only: bool,
) -> Steps[InvalidResource | None]:
    """The refusal, if any. Levels of loggers are this process' own, and not kept."""
    kind, name = resource.resource_type, resource.resource_name
    try:
        _check_rows(resource.configs)
        if kind == BROKER_LOGGER and isinstance(resource, incremental_alter_configs.AlterConfigsResource):
            check_logger_name(node, name)
            change_levels(resource.configs, validate_only=validate_only)
            return None
        _check_resource(node, kind, name)
    except InvalidResource as invalid:
        return invalid
    checked = _checked(node, resource, change)
    return (yield from write_overrides(entity_path(kind, name), checked, validate_only))


def _checked(
    node: "Node", resource: Any, change: Callable[[Any, Mapping[str, str]], dict[str, str]]
) -> Callable[[Mapping[str, str]], dict[str, str]]:
    def checked(before: Mapping[str, str]) -> dict[str, str]:
        after = change(resource, before)
        if resource.resource_type == TOPIC:
            check_topic_changes(resource.resource_name, before, after, node.config.log)
        else:
            check_broker_changes(node, before, after, is_default=not resource.resource_name)
        return after

    return checked


def _check_rows(rows: Sequence[Any]) -> None:
    """Of both APIs: each setting once, and a value wherever one is wanted."""
    if len({row.name for row in rows}) < len(rows):
        raise InvalidResource(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    without = [
        row.name for row in rows if row.value is None and getattr(row, "config_operation", SET) != DELETE
    ]
    if without:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(without)}"
        )


def _check_resource(node: "Node", kind: int, name: str) -> None:
    if kind == TOPIC:
        if not name:
            raise InvalidResource(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if name not in node.metadata.topics:
            raise InvalidResource(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == BROKER:
        if name:
            check_broker_name(node, name, is_change=True)
    elif kind == CLIENT_METRICS:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST,
            "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS",
        )
    else:
        raise InvalidResource(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def replaced(rows: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """The overrides as AlterConfigs gives them."""
    return {name: value for name, value in rows if value is not None}


def edited(
    kind: int, before: Mapping[str, str], rows: Sequence[tuple[str, int, str | None]]
) -> dict[str, str]:
    """The overrides after IncrementalAlterConfigs' operations on them."""
    after = dict(before)
    for name, operation, value in rows:
        if operation == DELETE:
            after.pop(name, None)
        elif operation == SET:
            after[name] = value or ""
        elif operation in (APPEND, SUBTRACT):
            after[name] = _list_edited(kind, name, operation, before.get(name), value or "")
        elif kind == BROKER:
            raise InvalidResource(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
        else:
            raise InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return after


def _list_edited(kind: int, name: str, operation: int, before: str | None, value: str) -> str:
    setting = setting_of(kind, name)
    if setting is None or setting.type is not ConfigType.LIST:
        verb = "append" if operation == APPEND else "subtract"
        raise InvalidResource(
            ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}"
        )
    standing = before if before is not None else text_of(setting.default) or ""
    members = [member for member in standing.split(",") if member]
    given = [member for member in value.split(",") if member]
    if operation == APPEND:
        members += [member for member in given if member not in members]
    else:
        members = [member for member in members if member not in given]
    return ",".join(members)
