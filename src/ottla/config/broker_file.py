"""A broker's ``server.properties``: read whole, every problem named at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ottla.config.areas import (
    BrokerConfig,
    ConnectionsConfig,
    ControllerConfig,
    ListenersConfig,
    LogManagementConfig,
    QuotasConfig,
    ReplicationConfig,
    ShutdownConfig,
    TopicsConfig,
    TransactionsConfig,
    ZooKeeperConfig,
    parse_address,
)
from ottla.config.authorizer import NAMES as AUTHORIZER_NAMES
from ottla.config.authorizer import authorizer_problems, read_authorizer
from ottla.config.broker_checks import broken_requirements
from ottla.config.definitions import all_broker_settings, broker_settings
from ottla.config.group import GroupConfig
from ottla.config.listening.listeners import read_listeners
from ottla.config.setting import BadValue, Scope, Setting, Standing, Value
from ottla.config.topic_config import log_defaults

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
T = TypeVar("T")


@dataclass(slots=True)
class BrokerFile:
    """What was read: a config when there is no problem, and what the operator should be told."""

    config: BrokerConfig | None = None
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)


def read_broker_file(
    properties: Mapping[str, str], host_name: Callable[[], str] = lambda: "localhost"
) -> BrokerFile:
    """Read the whole file. What ``host_name`` gives is advertised where the file says nothing."""
    file = BrokerFile()
    values = _read_values(properties, file)
    listeners = read_listeners(values, host_name, properties)
    file.unknown = [name for name in file.unknown if name not in listeners.names | AUTHORIZER_NAMES]
    file.problems += listeners.problems
    _check_together(properties, values, file.problems)
    if not file.problems:
        assert listeners.config is not None, "listeners without a problem have a config"
        file.config = build(values, listeners.config, properties)
    return file


def _read_values(properties: Mapping[str, str], file: BrokerFile) -> dict[str, Value]:
    settings = broker_settings()
    values = {name: setting.default for name, setting in settings.items()}
    for name in sorted(properties):
        setting = settings.get(name)
        if setting is None:
            file.unknown.append(name)
            continue
        try:
            value = setting.parse(properties[name])
        except BadValue as bad:
            file.problems.append(f"{name}={_shown(setting, properties[name])}: {bad}")
            continue
        if setting.standing is Standing.UNSUPPORTED and value != setting.default and value not in (None, ""):
            shown = _shown(setting, properties[name])
            file.problems.append(f"{name}={shown}: Ottla does not do this yet")
        elif setting.standing is Standing.WITHOUT_EFFECT and value != setting.default:
            file.without_effect.append(name)
        values[name] = value
    return values


def _shown(setting: Setting, text: str) -> str:
    return "[hidden]" if setting.is_sensitive else text


def _check_together(properties: Mapping[str, str], values: dict[str, Value], problems: list[str]) -> None:
    """The checks that need more than one setting."""
    if not values["zookeeper.connect"]:
        problems.append("zookeeper.connect is missing: a broker needs ZooKeeper")
    version = str(values["inter.broker.protocol.version"])
    if version != "3.9" and not version.startswith("3.9-"):
        problems.append(f"inter.broker.protocol.version={version}: Ottla speaks 3.9 with other brokers")
    if values["replica.selector.class"] not in (None, "", RACK_AWARE_SELECTOR):
        problems.append(f"replica.selector.class: Ottla knows {RACK_AWARE_SELECTOR} only")
    if metrics := str(values["ottla.metrics.listener"] or ""):
        try:
            parse_address(metrics)
        except ValueError:
            problems.append(f"ottla.metrics.listener={metrics}: write host:port, such as 127.0.0.1:9404")
    problems += authorizer_problems(properties)
    _check_identity(properties, values, problems)
    _check_replication(values, problems)
    problems += broken_requirements(values)


def _check_identity(properties: Mapping[str, str], values: dict[str, Value], problems: list[str]) -> None:
    broker_id, node_id = _int(values, "broker.id"), _int(values, "node.id")
    if "broker.id" in properties and "node.id" in properties and broker_id != node_id:
        problems.append(f"broker.id={broker_id} and node.id={node_id} must be the same")
    if "broker.id" not in properties:
        broker_id = values["broker.id"] = node_id
    reserved = _int(values, "reserved.broker.max.id")
    if broker_id < 0 and not values["broker.id.generation.enable"]:
        problems.append("broker.id is missing, and broker.id.generation.enable=false forbids to choose one")
    if values["broker.id.generation.enable"] and broker_id > reserved:
        problems.append(
            f"broker.id={broker_id} is above reserved.broker.max.id={reserved}, where chosen ids begin"
        )
    if broker_id < -1:
        problems.append(f"broker.id={broker_id} must not be negative")


def _check_replication(values: dict[str, Value], problems: list[str]) -> None:
    if _int(values, "replica.fetch.wait.max.ms") > _int(values, "replica.lag.time.max.ms"):
        problems.append("replica.fetch.wait.max.ms must not be larger than replica.lag.time.max.ms")
    if _int(values, "replica.fetch.wait.max.ms") > _int(values, "replica.socket.timeout.ms"):
        problems.append("replica.fetch.wait.max.ms must not be larger than replica.socket.timeout.ms")


def _int(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), f"{name} is a number"
    return value


def build(
    values: Mapping[str, Value], listeners: ListenersConfig, originals: Mapping[str, str]
) -> BrokerConfig:
    """The areas, from every setting's value."""
    log_dirs = str(values["log.dirs"] or values["log.dir"])
    rack = values["broker.rack"]
    return BrokerConfig(
        broker_id=_int(values, "broker.id"),
        reserved_broker_max_id=_int(values, "reserved.broker.max.id"),
        broker_rack=str(rack) if rack is not None else None,
        zookeeper=_area(ZooKeeperConfig, values),
        listeners=listeners,
        connections=_area(ConnectionsConfig, values),
        quotas=_area(QuotasConfig, values),
        authorizer=read_authorizer(originals),
        topics=_area(TopicsConfig, values),
        replication=_area(ReplicationConfig, values),
        log_management=_area(
            LogManagementConfig,
            {**values, "log.dirs": tuple(part.strip() for part in log_dirs.split(",") if part.strip())},
        ),
        log=log_defaults(values),
        controller=_area(ControllerConfig, values),
        shutdown=_area(ShutdownConfig, values),
        groups=_area(GroupConfig, values),
        transactions=_area(TransactionsConfig, values),
        originals=dict(originals),
    )


def _area(cls: type[T], values: Mapping[str, Value]) -> T:
    """One area: each field from the setting of the same name; a field without a setting keeps its default."""
    given: dict[str, Any] = {}
    for member in fields(cls):  # type: ignore[arg-type]
        name = member.name.replace("_", ".")
        if name in values:
            given[member.name] = values[name]
    return cls(**given)


def effective_values(originals: Mapping[str, str], *layers: Mapping[str, str]) -> dict[str, Value]:
    """Every setting's value: the table's default, then the file's, then that of each layer from ZooKeeper.

    Entries of a layer that cannot change at run time, or do not parse, are ignored.
    """
    settings = all_broker_settings()
    values = {name: setting.default for name, setting in settings.items()}
    for texts, is_dynamic in ((originals, False), *((layer, True) for layer in layers)):
        for name, text in texts.items():
            setting = settings.get(name)
            if setting is None or (is_dynamic and setting.scope is Scope.READ_ONLY):
                continue
            try:
                values[name] = setting.parse(text)
            except BadValue:
                continue
    return values


def unusable(layer: Mapping[str, str]) -> dict[str, str]:
    """The settings of a layer whose values do not parse, and why; ``effective_values`` ignores them."""
    settings = all_broker_settings()
    reasons: dict[str, str] = {}
    for name, text in layer.items():
        try:
            if name in settings:
                settings[name].parse(text)
        except BadValue as bad:
            reasons[name] = str(bad)
    return reasons


def with_values(config: BrokerConfig, values: Mapping[str, Value]) -> BrokerConfig:
    """The same broker with these values of its settings."""
    return build({**values, "broker.id": config.broker_id}, config.listeners, config.originals)
