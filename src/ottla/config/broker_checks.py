"""What Kafka requires of a broker's settings taken together: in its file, and whenever one is changed."""

import re
from collections.abc import Iterator, Mapping

from ottla.config.areas import parse_connection_overrides
from ottla.config.setting import Value
from ottla.config.topic_config import broker_default

MEBIBYTE = 1024 * 1024
POOLS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Thread pools that may change while the broker runs, in one step at most to the double or the half."""
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")


def broken_requirements(values: Mapping[str, Value]) -> list[str]:
    """What is wrong with the settings taken together, in words; empty when nothing is."""
    requirements = (*_of_logs(values), *_of_threads(values), *_of_clients(values))
    return [words for is_met, words in requirements if not is_met]


def why_not_while_running(now: Mapping[str, Value], then: Mapping[str, Value]) -> str | None:
    """Why a running broker cannot change from ``now`` to ``then``; None when it can."""
    for name in POOLS:
        before, after = _int(now, name), _int(then, name)
        if after != before and not max(1, before // 2) <= after <= before * 2:
            low, high = max(1, before // 2), before * 2
            return f"{name}={after}: a step from {before} must lead to between {low} and {high}"
    if _int(then, "max.connections") < 1 <= _int(now, "max.connections"):
        return "max.connections must be at least 1 while the broker runs"
    return None


def _of_logs(values: Mapping[str, Value]) -> Iterator[tuple[bool, str]]:
    def effective(topic_setting: str) -> int:
        value = broker_default(topic_setting, values)
        assert isinstance(value, int), f"{topic_setting} is a number"
        return value

    yield effective("segment.ms") >= 1, "log.roll.ms must be greater than or equal to 1"
    yield effective("segment.jitter.ms") >= 0, "log.roll.jitter.ms must be greater than or equal to 0"
    retention_ms = effective("retention.ms")
    is_sound = retention_ms >= 1 or retention_ms == -1
    yield is_sound, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    yield effective("flush.ms") >= 0, "log.flush.interval.ms must be greater than or equal to 0"
    low, high = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    yield _int(values, low) <= _int(values, high), f"{low} must not be larger than {high}"
    directories = values["log.dir"] if values["log.dirs"] is None else values["log.dirs"]
    is_named = any(part.strip() for part in str(directories).split(","))
    yield is_named, "At least one log directory must be defined via log.dirs or log.dir."


def _of_threads(values: Mapping[str, Value]) -> Iterator[tuple[bool, str]]:
    cleaners = _int(values, "log.cleaner.threads")
    yield cleaners >= 1, "log.cleaner.threads must be greater than or equal to 1"
    is_enough = _int(values, "log.cleaner.dedupe.buffer.size") // max(1, cleaners) > MEBIBYTE
    yield is_enough, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    is_fetched = _int(values, "num.replica.fetchers") >= 1
    yield is_fetched, "num.replica.fetchers must be greater than or equal to 1"


def _of_clients(values: Mapping[str, Value]) -> Iterator[tuple[bool, str]]:
    limits = parse_connection_overrides(str(values["max.connections.per.ip.overrides"]))
    is_open = _int(values, "max.connections.per.ip") > 0 or bool(limits)
    yield (
        is_open,
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    odd = [host for host in limits if _HOST.fullmatch(host) is None]
    yield not odd, f"max.connections.per.ip.overrides contains invalid addresses : {','.join(odd)}"
    idle, delay = "connections.max.idle.ms", "connection.failed.authentication.delay.ms"
    is_patient = _int(values, idle) < 0 or _int(values, delay) < _int(values, idle)
    yield is_patient, f"{delay} must be less than {idle}"
    queue, largest = "queued.max.request.bytes", "socket.request.max.bytes"
    has_room = _int(values, queue) <= 0 or _int(values, queue) >= _int(values, largest)
    yield has_room, f"{queue} must be larger or equal to {largest}"
    acks, replicas = "offsets.commit.required.acks", "offsets.topic.replication.factor"
    can_be = -1 <= _int(values, acks) <= _int(values, replicas)
    yield can_be, f"{acks} must be greater or equal to -1 and less or equal to {replicas}"


def _int(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), f"{name} is a number"
    return value
