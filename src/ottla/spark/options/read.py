"""The options of a read: Spark's Kafka names and meaning, checked on the driver, every refusal by name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.spark.errors import refuse, refuse_name
from ottla.spark.options.kafka_settings import PREFIX, KafkaSettings, kafka_settings

T = TypeVar("T")

"""What these numbers mean as offsets in the options' JSON."""

_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "offsetCommitGroup")
_BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_KNOWN = (
    *_STRATEGIES,
    *_STREAM_ONLY,
    *_BATCH_ONLY,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_IGNORED = ("path",)

_UNITS_MS = {
    "ms": 1,
    "s": 1000,
    "second": 1000,
    "m": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
}
_UNITS_MS |= {"d": 86_400_000, "day": 86_400_000, "w": 604_800_000, "week": 604_800_000, "millisecond": 1}
_UNITS_MS |= {"min": 60_000, "sec": 1000}
_RELATIVE = re.compile(r"^-\s*(\d+)\s*([a-zA-Z]+)$")
_DURATION = re.compile(r"^(\d+)\s*([a-zA-Z]*)$")


@dataclass(frozen=True, slots=True)
class ByOffset:
    """Each partition by an offset, or by ``EARLIEST`` or ``LATEST``."""

    option: str
    offsets: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ByTime:
    """The first record at or after a time: one for all partitions (``everywhere_ms``), or one for each."""

    option: str
    everywhere_ms: int | None = None
    times_ms: dict[TopicPartition, int] | None = None
    falls_back_to_latest: bool = False


@dataclass(frozen=True, slots=True)
class Ago:
    """The first record that is not older than a span."""

    option: str
    span_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """One end of every partition."""

    offset: int


Bound = ByOffset | ByTime | Ago | End


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are meant; exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Everything a read needs to know; goes to every task."""

    kafka: KafkaSettings
    subscription: Subscription
    starting: Bound
    ending: Bound
    include_headers: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    offset_commit_group: str | None = None
    poll_timeout_ms: int = 120_000
    fetch_offset_retries: int = 3
    fetch_offset_retry_interval_ms: int = 1000


def read_options(options: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """The checked options; ``OptionRefused`` for the first that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    _check_names(given, is_stream)

    def optional(name: str, parse: Callable[[str, str], T]) -> T | None:
        value = given.get(name.lower())
        return None if value is None else parse(name, value)

    poll = optional("kafkaConsumer.pollTimeoutMs", a_count)
    retries = optional("fetchOffset.numRetries", a_count)
    interval = optional("fetchOffset.retryIntervalMs", a_count)
    delay = optional("maxTriggerDelay", _duration_ms)
    fails = optional("failOnDataLoss", a_flag)
    starting, ending = _starting(given, is_stream), _ending(given)
    _check_times(starting, ending)
    return ReadOptions(
        kafka=kafka_settings(given, is_sink=False),
        subscription=_subscription(given),
        starting=starting,
        ending=ending,
        include_headers=optional("includeHeaders", a_flag) or False,
        fail_on_data_loss=True if fails is None else fails,
        min_partitions=optional("minPartitions", a_positive),
        max_records_per_partition=optional("maxRecordsPerPartition", a_positive),
        max_offsets_per_trigger=optional("maxOffsetsPerTrigger", a_positive),
        min_offsets_per_trigger=optional("minOffsetsPerTrigger", a_count),
        max_trigger_delay_ms=15 * 60_000 if delay is None else delay,
        offset_commit_group=given.get("offsetcommitgroup"),
        poll_timeout_ms=120_000 if poll is None else poll,
        fetch_offset_retries=3 if retries is None else retries,
        fetch_offset_retry_interval_ms=1000 if interval is None else interval,
    )


def _check_names(given: Mapping[str, str], is_stream: bool) -> None:
    known = {name.lower(): name for name in _KNOWN}
    for name, value in given.items():
        if name.startswith(PREFIX) or name in _IGNORED:
            continue
        if name not in known:
            raise refuse_name(name, "there is no such option", f"there are {', '.join(_KNOWN)} and kafka.*")
        if is_stream and known[name] in _BATCH_ONLY:
            raise refuse(known[name], value, "a stream has no end", "remove it, or use spark.read")
    if (
        given.get("minoffsetspertrigger", "").isdecimal()
        and given.get("maxoffsetspertrigger", "").isdecimal()
        and int(given["minoffsetspertrigger"]) > int(given["maxoffsetspertrigger"])
    ):
        value = given["minoffsetspertrigger"]
        raise refuse("minOffsetsPerTrigger", value, "it is above maxOffsetsPerTrigger", "make it smaller")


def _subscription(given: Mapping[str, str]) -> Subscription:
    chosen = [name for name in _STRATEGIES if name.lower() in given]
    if len(chosen) != 1:
        value = ", ".join(chosen)
        raise refuse(
            "subscribe", value, "exactly one of subscribe, subscribePattern and assign is needed", "give one"
        )
    name = chosen[0]
    value = given[name.lower()].strip()
    if not value:
        raise refuse(name, value, "it is empty", "name a topic")
    match name:
        case "subscribe":
            topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
            if not topics:
                raise refuse(name, value, "no topic is named", "write topic,topic")
            return Subscription(topics=topics)
        case "subscribePattern":
            try:
                re.compile(value)
            except re.error as wrong:
                raise refuse(
                    name, value, f"it is no regular expression ({wrong})", "write Python's form"
                ) from None
            return Subscription(pattern=value)
        case _:
            return Subscription(partitions=_assigned(name, value))


def _assigned(name: str, value: str) -> tuple[TopicPartition, ...]:
    try:
        parsed = msgspec.json.decode(value, type=dict[str, list[int]])
    except msgspec.DecodeError as wrong:
        raise refuse(name, value, str(wrong), 'write {"topic": [0, 1]}') from None
    return tuple(TopicPartition(topic, number) for topic, numbers in parsed.items() for number in numbers)


def _starting(given: Mapping[str, str], is_stream: bool) -> Bound:
    """The first of startingTimestamp, startingOffsetsByTimestamp and startingOffsets counts."""
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        name = "startingOffsetsByTimestampStrategy"
        raise refuse(name, strategy, "there is no such strategy", "choose error or latest")
    by_time = _by_time(given, "starting", falls_back=strategy == "latest")
    default = LATEST if is_stream else EARLIEST
    bound: Bound = by_time or _by_offset(given, "startingOffsets", default)
    if not is_stream and (
        bound == End(LATEST) or (isinstance(bound, ByOffset) and LATEST in bound.offsets.values())
    ):
        value = given["startingoffsets"]
        raise refuse(
            "startingOffsets",
            value,
            "a batch cannot begin at the latest offset",
            "use earliest, offsets or a time",
        )
    return bound


def _ending(given: Mapping[str, str]) -> Bound:
    bound: Bound = _by_time(given, "ending", falls_back=True) or _by_offset(given, "endingOffsets", LATEST)
    if bound == End(EARLIEST) or (isinstance(bound, ByOffset) and EARLIEST in bound.offsets.values()):
        value = given["endingoffsets"]
        raise refuse(
            "endingOffsets",
            value,
            "a batch cannot end at the earliest offset",
            "use latest, offsets or a time",
        )
    return bound


def _check_times(starting: Bound, ending: Bound) -> None:
    """Times of partitions are compared as they are given, whatever offsets they stand for."""
    if isinstance(starting, ByTime) and isinstance(ending, ByTime) and starting.times_ms and ending.times_ms:
        for partition, time_ms in starting.times_ms.items():
            until_ms = ending.times_ms.get(partition, time_ms)
            if 0 <= until_ms < time_ms:
                value = f"{partition}: {time_ms}"
                raise refuse(
                    starting.option, value, f"{ending.option} is {until_ms}", "let it not lie behind the end"
                )


def _by_time(given: Mapping[str, str], which: str, *, falls_back: bool) -> ByTime | None:
    name = f"{which}Timestamp"
    if (value := given.get(name.lower())) is not None:
        return ByTime(name, everywhere_ms=a_count(name, value), falls_back_to_latest=falls_back)
    name = f"{which}OffsetsByTimestamp"
    if (value := given.get(name.lower())) is not None:
        return ByTime(name, times_ms=offsets_json(name, value), falls_back_to_latest=falls_back)
    return None


def _by_offset(given: Mapping[str, str], name: str, default: int) -> Bound:
    value = given.get(name.lower())
    if value is None:
        return End(default)
    text = value.strip()
    if text.lower() in ("earliest", "latest"):
        return End(EARLIEST if text.lower() == "earliest" else LATEST)
    if (relative := _RELATIVE.match(text)) is not None:
        unit = _unit_ms(relative[2])
        if unit is None:
            raise refuse(
                name, value, f"there is no unit {relative[2]!r}", "write -10 minutes, -2 hours, -1 day"
            )
        return Ago(name, int(relative[1]) * unit)
    return ByOffset(name, offsets_json(name, value))


def offsets_json(name: str, value: str) -> dict[TopicPartition, int]:
    """Spark's form: ``{"topic": {"0": 23, "1": -2}}``."""
    try:
        parsed = msgspec.json.decode(value, type=dict[str, dict[str, int]])
        found = {
            TopicPartition(topic, int(number)): offset
            for topic, partitions in parsed.items()
            for number, offset in partitions.items()
        }
    except (msgspec.DecodeError, ValueError) as wrong:
        raise refuse(name, value, str(wrong), 'write {"topic": {"0": 23, "1": -2}}') from None
    for partition, offset in found.items():
        if offset < EARLIEST:
            raise refuse(name, value, f"{partition}: {offset} is no offset", "-2 is earliest, -1 is latest")
    return found


def a_count(name: str, value: str) -> int:
    """A whole number from 0 on."""
    if not value.strip().isdecimal():
        raise refuse(name, value, "it is no whole number", "give digits only")
    return int(value)


def a_positive(name: str, value: str) -> int:
    """A whole number from 1 on."""
    number = a_count(name, value)
    if number < 1:
        raise refuse(name, value, "it must be at least 1", "leave it out for no limit")
    return number


def a_flag(name: str, value: str) -> bool:
    """Yes or no."""
    if value.strip().lower() not in ("true", "false"):
        raise refuse(name, value, "it is neither true nor false", "write true or false")
    return value.strip().lower() == "true"


def _duration_ms(name: str, value: str) -> int:
    """A number alone is milliseconds, as Spark has it."""
    match = _DURATION.match(value.strip())
    unit = None if match is None else _unit_ms(match[2] or "ms")
    if match is None or unit is None:
        raise refuse(name, value, "it is no duration", "write 15m, 30s or 2 hours")
    return int(match[1]) * unit


def _unit_ms(name: str) -> int | None:
    """A unit by its name, or by the plural of it; ``ms`` is not the plural of ``m``."""
    unit = name.lower()
    return _UNITS_MS.get(unit, _UNITS_MS.get(unit.removesuffix("s")))
