"""A client for the length of a command; what goes wrong with it becomes one sentence."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ottla.cli.local.state import DEFAULT_DATA_DIR, read_state
from ottla.cli.shared.options import read_settings
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.shared.waiting import PATIENCE_S, tell_of_waiting
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig, parse_bootstrap_servers
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, wait_for
from ottla.client.errors import (
    BrokerError,
    ClientError,
    ConnectionLost,
    LoginFailed,
    TimedOut,
    UnsupportedByBroker,
)
from ottla.client.sasl_settings import NAMES as SASL_NAMES
from ottla.client.sasl_settings import read_encryption, read_login
from ottla.config.tls.contexts import TlsRefused
from ottla.model.errors import ErrorCode

USUAL_SERVER = "127.0.0.1:9092"
REACH_MS_MAX = 10_000
API_MS_MAX = 30_000
"""Commands are impatient: Kafka's own tools wait 60 seconds."""

_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "default_api_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "socket.connection.setup.timeout.ms": "socket_connection_setup_timeout_ms",
}

CLIENT_SETTINGS = frozenset({"bootstrap.servers", "client.id", *SASL_NAMES, *_NUMBERS})
"""What producers and consumers leave to the connection; servers named on the command line count more."""


@contextmanager
def connected(
    bootstrap_server: str, command_config: Path | None = None, settings: dict[str, str] | None = None
) -> Iterator[Client]:
    """A client that has reached the cluster."""
    own = read_settings(command_config)
    if command_config is None and "bootstrap.servers" not in (settings or {}):
        own = _settings_here(bootstrap_server)
    properties = {**own, **(settings or {})}
    bootstrap_server = bootstrap_server or properties.get("bootstrap.servers") or servers_here()
    config = client_config(bootstrap_server, properties)
    try:
        with Client(config) as client:
            failure = client.run(_reach)
            if isinstance(failure, LoginFailed):
                raise failure
            if failure is not None:
                raise CommandRefused(
                    f"no broker answers at {bootstrap_server} ({failure}); {_next_step(bootstrap_server)}"
                )
            yield client
    except ClientError as error:
        raise CommandRefused(sentence(error)) from error
    except TlsRefused as error:
        raise CommandRefused(str(error)) from error
    except struct.error as error:
        raise CommandRefused(f"a number does not fit into Kafka's protocol: {error}") from error


def _next_step(bootstrap_server: str) -> str:
    state = read_state(DEFAULT_DATA_DIR)
    if state is not None and state.bootstrap_servers == bootstrap_server:
        return "`ottla status` shows the state of the cluster here"
    return "start a cluster with `ottla up`, or name one with --bootstrap-server"


def servers_here() -> str:
    """Where a cluster is looked for when none is named."""
    state = read_state(DEFAULT_DATA_DIR)
    return USUAL_SERVER if state is None else state.bootstrap_servers


def _settings_here(bootstrap_server: str) -> dict[str, str]:
    """What the cluster here wants of its clients, if it is the one that is meant."""
    state = read_state(DEFAULT_DATA_DIR)
    if (
        state is None
        or state.client_properties is None
        or bootstrap_server not in ("", state.bootstrap_servers)
    ):
        return {}
    settings = read_settings(Path(state.client_properties))
    settings.pop("bootstrap.servers", None)
    return settings


def client_config(bootstrap_server: str, properties: dict[str, str]) -> ClientConfig:
    """The client's settings by Kafka's names; those that it cannot honour are refused by name."""
    try:
        servers = parse_bootstrap_servers(bootstrap_server)
    except ValueError as error:
        raise UsageRefused(f"--bootstrap-server {bootstrap_server!r}: {error}") from None
    config = ClientConfig(
        bootstrap_servers=servers,
        default_api_timeout_ms=API_MS_MAX,
        socket_connection_setup_timeout_ms=REACH_MS_MAX // len(servers),  # Each is tried in that time.
    )
    try:
        config = replace(config, login=read_login(properties), tls=read_encryption(properties))
    except ValueError as error:
        raise CommandRefused(str(error)) from None
    if "client.id" in properties:
        config = replace(config, client_id=properties["client.id"])
    for name, field in _NUMBERS.items():
        if name in properties:
            if not properties[name].isdecimal():
                raise CommandRefused(f"{name}={properties[name]} is not a number")
            config = replace(config, **{field: int(properties[name])})  # type: ignore[arg-type]
    return config


def _reach(engine: Engine) -> Operation[ClientError | None]:
    """Try every named broker twice; why none answered, or ``None``."""
    deadline_ms = engine.now_ms + REACH_MS_MAX
    wonder_ms = engine.now_ms + round(PATIENCE_S * 1000)
    is_told = False
    failures_max = 2 * len(engine.config.bootstrap_servers)
    failures = 0
    engine.refresh_soon()
    while not engine.metadata.version:
        next_ms = deadline_ms if is_told else wonder_ms
        has_come = yield from wait_for(engine.metadata_came, max(1, next_ms - engine.now_ms))
        if not has_come and not is_told:
            is_told = True
            tell_of_waiting(f"no broker has answered yet; trying for {REACH_MS_MAX // 1000} s in all")
        if has_come and engine.metadata_error is not None:
            failures += 1
        is_over = failures >= failures_max or engine.now_ms >= deadline_ms
        if is_over and not engine.metadata.version:
            return engine.metadata_error or ConnectionLost(f"no answer in {REACH_MS_MAX // 1000} s")
    return None


_MEANING = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker asked does not lead the partition",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at the moment",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group reads this topic; stop its consumers first",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "that is not a valid topic name",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies outside the log",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the group's coordinator is not available at the moment",
}


def sentence(error: ClientError) -> str:
    """A client's error for the user."""
    match error:
        case BrokerError():
            meaning = error.detail or _MEANING.get(error.code, "the broker refused")
            return f"{meaning} ({error.code.name})"
        case TimedOut() | ConnectionLost():
            return f"{error}; look with `ottla describe` which brokers run, and try again"
        case LoginFailed():
            return f"the login failed at {error}; see sasl.mechanism and sasl.jaas.config"
        case UnsupportedByBroker():
            return f"the cluster is too old for this: {error}"
        case _:
            return str(error)


def reason(code: int, message: str | None = None) -> str:
    """What a row's error code says: the broker's own words if it sent any."""
    known = ErrorCode(code)
    return message or f"{_MEANING.get(known, 'the broker refused')} ({known.name})"
