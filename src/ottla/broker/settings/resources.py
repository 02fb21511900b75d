"""What settings can belong to, and which changes of them are sound."""

import re
from collections.abc import Mapping

from ottla.broker.settings.dynamic import DynamicConfigs
from ottla.config.broker_checks import broken_requirements, why_not_while_running
from ottla.config.broker_file import effective_values
from ottla.config.definitions import (
    broker_setting,
    broker_settings,
    is_password,
    name_without_listener,
    topic_settings,
)
from ottla.config.log import LogConfig
from ottla.config.setting import BadValue, Scope, Setting, Standing
from ottla.config.topic_config import check_new_override, parse_topic_override, why_in_conflict
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)
"""IncrementalAlterConfigs' operations."""
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was"
    " sent to an incompatible broker. See the broker logs for more details."
)
"""What Kafka says with INVALID_REQUEST when it has nothing better to say."""

NOT_WHILE_RUNNING = frozenset({"listeners", "advertised.listeners", "listener.security.protocol.map"})
"""Kafka can change these while it runs; Ottla cannot."""
OF_ALL_BROKERS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""What may be set for one listener of all brokers at once."""
PER_LISTENER_ALONE = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""What Kafka changes for one listener at a time."""
_BROKER_ID = re.compile(r"[+-]?0*[0-9]{1,10}")


class InvalidResource(Exception):
    """The resource, or what is wanted of it, is refused; code and words go into the answer."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def broker_id_of(name: str) -> int | None:
    """The number that a resource's name is, written as in Java: neither blanks nor underscores."""
    return int(name) if _BROKER_ID.fullmatch(name) is not None else None


def check_broker_name(name: str, own_id: BrokerId, *, is_change: bool = False) -> None:
    """A broker speaks for itself alone."""
    broker_id = broker_id_of(name)
    if broker_id is None:
        kind = "Node" if is_change else "Broker"
        raise _invalid(f"{kind} id must be an integer, but it is: {name}")
    if broker_id != own_id:
        expected = f"{own_id}" if is_change else f"{own_id} or empty string"
        raise _invalid(f"Unexpected broker id, expected {expected}, but received {name}")


def setting_of(resource_type: int, name: str) -> Setting | None:
    """What the tables say of a setting of that kind of resource."""
    if resource_type == TOPIC:
        return topic_settings().get(name)
    return broker_setting(name)


def check_topic_changes(
    name: str, before: Mapping[str, str], after: Mapping[str, str], defaults: LogConfig
) -> None:
    """All overrides that the topic would then have must be sound, and Ottla must do what the new ones ask."""
    for key, text in after.items():
        try:
            if before.get(key) == text:
                parse_topic_override(key, text)
            else:
                check_new_override(key, text)
        except BadValue as bad:
            where = f"Invalid config value for resource ConfigResource(type=TOPIC, name='{name}'): "
            is_known = key in topic_settings()
            raise InvalidResource(ErrorCode.INVALID_CONFIG, (where if is_known else "") + str(bad)) from None
    conflict = why_in_conflict(defaults, after)
    if conflict is not None:
        raise InvalidResource(ErrorCode.INVALID_CONFIG, conflict)


def check_broker_changes(
    configs: DynamicConfigs, before: Mapping[str, str], after: Mapping[str, str], *, is_default: bool
) -> None:
    """All values must be sound, and the new ones such as this broker, or all, can take at run time.

    What others have stored is left alone: a broker of Apache's may have use for it.
    """
    new = [key for key, text in after.items() if before.get(key) != text]
    for key in new:
        _check_may_change(key, is_default)
    for key, text in after.items():
        _check_value(key, text, is_new=key in new)
    own, default = configs.broker_overrides()
    layers = (after, own) if is_default else (default, after)
    values = effective_values(configs.static.originals, *layers)
    for broken in broken_requirements(values):
        raise _invalid(f"requirement failed: {broken}")
    if why := why_not_while_running(configs.values, values):
        raise _invalid(f"Invalid dynamic configuration: {why}")
    if passwords := [key for key in new if is_password(key)]:
        raise InvalidResource(
            ErrorCode.INVALID_CONFIG, f"Ottla keeps no passwords in ZooKeeper: {', '.join(passwords)}"
        )


def _check_may_change(name: str, is_default: bool) -> None:
    setting = broker_settings().get(name)
    if setting is not None and setting.scope is Scope.READ_ONLY:
        raise _invalid(f"Cannot update these configs dynamically: Set({name})")
    if name in PER_LISTENER_ALONE:
        raise _invalid(
            "These security configs can be dynamically updated only per-listener using the listener prefix:"
            f" Set({name})"
        )
    of_listener = name_without_listener(name)
    is_per_broker = of_listener is not None and of_listener not in OF_ALL_BROKERS
    if is_default and (is_per_broker or (setting is not None and setting.scope is Scope.PER_BROKER)):
        raise _invalid(
            f"Cannot update these configs at default cluster level, broker id must be specified: Set({name})"
        )


def _check_value(name: str, text: str, *, is_new: bool) -> None:
    setting = broker_setting(name)
    if setting is None:
        return
    try:
        value = setting.parse(text)
    except BadValue as bad:
        raise _invalid(f"Invalid value {text} for configuration {name}: {bad}") from None
    is_unsupported = setting.standing is Standing.UNSUPPORTED and value != setting.default
    if is_new and (is_unsupported or name in NOT_WHILE_RUNNING):
        raise _invalid(f"Ottla cannot do this while it runs: {name}")


def _invalid(message: str) -> InvalidResource:
    return InvalidResource(ErrorCode.INVALID_REQUEST, message)
