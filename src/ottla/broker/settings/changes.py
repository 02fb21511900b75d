"""What the two Alter APIs share: check each resource, change its overrides, answer for all."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Steps
from ottla.broker.settings.dynamic import DynamicConfigs
from ottla.broker.settings.logger_levels import change_levels, check_logger_name
from ottla.broker.settings.resources import (
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
from ottla.broker.settings.writer import entity_path, write_overrides
from ottla.config.setting import ConfigType, text_of
from ottla.model.errors import ErrorCode
from ottla.wire.apis import incremental_alter_configs

Outcome: TypeAlias = tuple[int, str, int, str | None]
"""Resource type, resource name, error code, error message."""
Change: TypeAlias = Callable[[Any, Mapping[str, str]], dict[str, str]]
"""From a resource of the request and its overrides to those that it shall have."""


class ConfigChanges:
    """Checks and writes what the two APIs ask for."""

    def __init__(self, runtime: Runtime, metadata: MetadataImage, configs: DynamicConfigs) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._configs = configs

    def change_all(
        self, resources: Sequence[Any], change: Change, validate_only: bool
    ) -> Steps[list[Outcome]]:
        """Change one resource after the other; each has its own outcome."""
        outcomes: list[Outcome] = []
        counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
        for resource in resources:
            kind, name = resource.resource_type, resource.resource_name
            refusal: InvalidResource | None
            if counts[kind, name] > 1:
                refusal = InvalidResource(
                    ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                )
            else:
                refusal = yield from self._change_one(resource, change, validate_only)
            if refusal is None:
                outcomes.append((kind, name, ErrorCode.NONE, None))
            else:
                outcomes.append((kind, name, refusal.code, refusal.message))
        return outcomes

    def _change_one(
        self, resource: Any, change: Change, validate_only: bool
    ) -> Steps[InvalidResource | None]:
        """The refusal, if any. Levels of loggers are this process' own, and not kept."""
        kind, name = resource.resource_type, resource.resource_name
        try:
            _check_rows(resource.configs)
            if kind == BROKER_LOGGER and isinstance(resource, incremental_alter_configs.AlterConfigsResource):
                check_logger_name(name, self._runtime.identity.broker_id)
                change_levels(resource.configs, validate_only=validate_only)
                return None
            self._check_resource(kind, name)
        except InvalidResource as invalid:
            return invalid

        def checked(before: Mapping[str, str]) -> dict[str, str]:
            after = change(resource, before)
            if kind == TOPIC:
                check_topic_changes(name, before, after, self._runtime.config.log)
            else:
                check_broker_changes(self._configs, before, after, is_default=not name)
            return after

        return (yield from write_overrides(entity_path(kind, name), checked, validate_only))

    def _check_resource(self, kind: int, name: str) -> None:
        if kind == TOPIC:
            if not name:
                raise InvalidResource(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            if name not in self._metadata.topics:
                raise InvalidResource(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
                )
        elif kind == BROKER:
            if name:
                check_broker_name(name, self._runtime.identity.broker_id, is_change=True)
        elif kind == CLIENT_METRICS:
            raise InvalidResource(
                ErrorCode.INVALID_REQUEST,
                "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS",
            )
        else:
            raise InvalidResource(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


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
