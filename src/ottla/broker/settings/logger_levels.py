"""How loud each part of this process logs: shown and changed by Kafka's names of the levels."""

import logging
from collections.abc import Collection, Sequence
from typing import Any

from ottla.broker.settings.entries import ConfigSource, Row
from ottla.broker.settings.resources import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    InvalidResource,
    broker_id_of,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId

log = logging.getLogger(__name__)

ROOT = "root"
TRACE = 5
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
_NAMES = {number: name for name, number in LEVELS.items()}


def logger_rows(names: Collection[str] | None) -> list[Row]:
    """Every logger of ours and its level; those without one of their own have that of who stands above."""
    return [
        Row(
            name=name,
            value=_NAMES.get(level := _logger(name).getEffectiveLevel(), logging.getLevelName(level)),
            config_source=int(ConfigSource.DYNAMIC_BROKER_LOGGER),
        )
        for name in _known()
        if names is None or name in names
    ]


def check_logger_name(name: str, own_id: BrokerId) -> None:
    """A broker speaks for its own process alone."""
    if broker_id_of(name) is None:
        raise InvalidResource(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if broker_id_of(name) != own_id:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {own_id}, but received {name}"
        )


def change_levels(rows: Sequence[Any], *, validate_only: bool) -> None:
    """Set levels, or let loggers have that of who stands above: all of the rows, or none of them."""
    known = set(_known())
    for row in rows:
        _check(row.name, row.config_operation, row.value, known)
    if validate_only:
        return
    for row in rows:
        level = LEVELS[row.value] if row.config_operation == SET else logging.NOTSET
        _logger(row.name).setLevel(level)
        log.warning("log level changed logger=%s level=%s", row.name, row.value if level else "inherited")


def _check(name: str, operation: int, value: str | None, known: set[str]) -> None:
    if operation in (APPEND, SUBTRACT):
        word = "APPEND" if operation == APPEND else "SUBTRACT"
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, f"{word} operation is not allowed for the BROKER_LOGGER resource"
        )
    if operation not in (SET, DELETE):
        raise InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if name not in known:
        raise InvalidResource(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE and name == ROOT:
        raise InvalidResource(
            ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed"
        )
    if operation == SET and value not in LEVELS:
        raise InvalidResource(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {value} as it is not a supported log level."
            f" Valid log levels are {', '.join(LEVELS)}",
        )


def _known() -> list[str]:
    ours = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "ottla"]
    return sorted([*ours, ROOT])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)
