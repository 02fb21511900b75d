"""Levels of loggers, shown and changed while the broker runs."""

import logging
from collections.abc import Iterator

import pytest

from ottla.model.errors import ErrorCode
from ottla.wire.apis import alter_configs
from ottla.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.bench.node_bench import Bench
from unit.broker.settings.test_settings_apis import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    a_bench_with_a_topic,
    describe,
    edit,
)

BROKER_LOGGER = 8
ORDERS = "ottla.broker.life.startup"


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A broker; afterwards everything is as loud as before."""
    logger, root = logging.getLogger(ORDERS), logging.getLogger()
    before = logger.level, root.level
    yield a_bench_with_a_topic()
    logger.setLevel(before[0])
    root.setLevel(before[1])


def shown(bench: Bench, name: str) -> str | None:
    row = describe(bench, BROKER_LOGGER, "1", name)[name]
    assert (row.config_source, row.read_only, row.is_sensitive) == (6, False, False)
    return row.value


@pytest.mark.parametrize("level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_a_level_is_set_and_shown_and_taken_back(bench: Bench, level: str) -> None:
    edit(bench, BROKER_LOGGER, "1", ("root", SET, "WARN"))

    assert edit(bench, BROKER_LOGGER, "1", (ORDERS, SET, level)) == (ErrorCode.NONE, None)
    assert shown(bench, ORDERS) == level
    assert edit(bench, BROKER_LOGGER, "1", (ORDERS, DELETE, None)) == (ErrorCode.NONE, None)

    assert shown(bench, ORDERS) == shown(bench, "root") == "WARN"
    assert logging.getLogger(ORDERS).level == logging.NOTSET


@pytest.mark.parametrize(
    ("broker", "row", "code"),
    [
        ("1", (ORDERS, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", (ORDERS, SET, "info"), ErrorCode.INVALID_CONFIG),
        ("1", (ORDERS, SET, None), ErrorCode.INVALID_REQUEST),
        ("1", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("no.such.logger", DELETE, None), ErrorCode.INVALID_CONFIG),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("1", (ORDERS, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (ORDERS, SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (ORDERS, 9, "INFO"), ErrorCode.UNKNOWN_SERVER_ERROR),
        ("2", (ORDERS, SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", (ORDERS, SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("x", (ORDERS, SET, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_no_level_of_a_logger_of_this_broker_is_refused_as_a_whole(
    bench: Bench, broker: str, row: tuple[str, int, str | None], code: ErrorCode
) -> None:
    other = "ottla.broker.node"
    before = logging.getLogger(other).level

    answered, _ = edit(bench, BROKER_LOGGER, broker, (other, SET, "FATAL"), row)

    assert answered == code
    assert logging.getLogger(other).level == before


def test_validation_alone_changes_nothing_and_the_older_api_knows_no_loggers(bench: Bench) -> None:
    row = AlterableConfig(name=ORDERS, config_operation=SET, value="FATAL")
    resource = AlterConfigsResource(resource_type=BROKER_LOGGER, resource_name="1", configs=[row])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    assert bench.ask(request, 1).responses[0].error_code == ErrorCode.NONE

    old = alter_configs.AlterConfigsResource(
        resource_type=BROKER_LOGGER,
        resource_name="1",
        configs=[alter_configs.AlterableConfig(name=ORDERS, value="FATAL")],
    )
    answer = bench.ask(alter_configs.AlterConfigsRequest(resources=[old]), 2)

    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert logging.getLogger(ORDERS).level != logging.CRITICAL
