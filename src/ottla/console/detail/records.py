"""Look at records: by offset, by time, the newest; filters are words, never a language."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec

from ottla.client.aio.client import Client, Consumer
from ottla.client.config import ClientConfig
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.console.pages.frame import Frame, frame_of
from ottla.console.pages.timeline import read_time
from ottla.console.read.world import World
from ottla.insight.wording import counted, time_text
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.record import Record

ROWS_MAX, BYTES_MAX, SECONDS_MAX = 500, 2_000_000, 5.0
"""Of one look."""
ROWS = 50
CHARACTERS_SHOWN = 2_000
POLL_MS = 300
OFFSET_DIGITS_MAX = 18
NEWEST, OLDEST, OFFSET, TIME = "newest", "oldest", "offset", "time"
Offsets = dict[TopicPartition, int]


class Shown(msgspec.Struct, frozen=True):
    """Some bytes as text: hexadecimal where they are none in UTF-8; ``None`` is null."""

    text: str | None
    bytes: int
    is_text: bool
    is_cut: bool


class RecordRow(msgspec.Struct, frozen=True):
    """One record."""

    partition: int
    offset: int
    time: str
    key: Shown
    value: Shown
    headers: list[tuple[str, Shown]]


class Asked(msgspec.Struct, frozen=True):
    """What the form asks for."""

    partition: str = ""
    start: str = NEWEST
    at: str = ""
    limit: str = ""
    key: str = ""
    value: str = ""


class RecordsPage(msgspec.Struct, frozen=True):
    """What was found, and how far it looked."""

    frame: Frame
    topic: str
    partitions: int
    asked: Asked
    problem: str | None
    sentence: str
    looked: list[str]
    rows: list[RecordRow]
    go_on: str | None
    """The query that goes on where this look ended."""


class CannotLook(Exception):
    """Why there is nothing to show: one sentence."""


async def records_page(
    world: World, config: ClientConfig, topic: str, asked: Asked, *, is_allowed: bool
) -> RecordsPage | None:
    """One look, with limits; ``None`` where there is no such topic."""
    picture = world.picture
    names = sorted(name for name in (picture.partitions if picture else ()) if name.topic == topic)
    if picture is None or not names:
        return None
    problem, found = None, Look({}, {}, ROWS)
    try:
        if not is_allowed:
            raise CannotLook("This console shows no records: it was started with --no-records.")
        chosen = names
        if asked.partition:
            chosen = names[_digits("partition", asked.partition) :][:1]
        led = [name for name in chosen if picture.partitions[name].leader in picture.live]
        if not led:
            raise CannotLook(f"{topic} has no such partition, or it has no leader now.")
        world.requests += len(led)
        async with Client(config) as client:
            found = await _look(client, led, asked)
    except CannotLook as why:
        problem = str(why)
    except ClientError as why:
        problem = f"The brokers refuse: {why}."
    return RecordsPage(
        frame_of(world, f"Records of {topic}", f"ottla console-consumer --topic {topic} --from-beginning"),
        topic,
        len(names),
        asked,
        problem,
        found.sentence(),
        found.words(),
        [_row(*pair) for pair in found.sorted(newest_first=asked.start == NEWEST)],
        found.go_on(asked),
    )


async def _look(client: Client, names: list[TopicPartition], asked: Asked) -> "Look":
    limit = min(ROWS_MAX, _digits("limit", asked.limit)) if asked.limit else ROWS
    low, high = await _at(client, names, EARLIEST), await _at(client, names, LATEST)
    match asked.start:
        case str() if asked.start == OLDEST:
            begin = low
        case str() if asked.start == OFFSET:
            begin = dict.fromkeys(names, _digits("offset", asked.at))
        case str() if asked.start == TIME:
            found = await _at(client, names, _time_ms(asked.at))
            begin = {name: offset if offset >= 0 else high[name] for name, offset in found.items()}
        case _:
            each = -(-limit // len(names))
            begin = {name: high[name] - each for name in names}
    look = Look({n: min(max(begin[n], low[n]), high[n]) for n in names}, high, limit)
    await look.through(client.consumer(auto_offset_reset="earliest"), _matcher(asked))
    return look


async def _at(client: Client, names: list[TopicPartition], where: int) -> Offsets:
    found = await client.run(list_offsets, dict.fromkeys(names, where))
    return {name: row.offset for name, row in found.items()}


class Look:
    """From some offsets towards the ends there were when it began, until a limit says stop."""

    def __init__(
        self, begin: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int
    ) -> None:
        self.begin, self.ends, self.limit = begin, ends, limit
        self.next: Offsets = dict(begin)
        self.found: list[tuple[TopicPartition, Record]] = []
        self.seen = 0
        self.bytes = 0
        self.stopped = ""

    async def through(self, consumer: Consumer, matches: Callable[[Record], bool]) -> None:
        """Read until all is read or a limit is reached."""
        left = {name: at for name, at in self.next.items() if at < self.ends[name]}
        if not left:
            return
        consumer.assign(left)
        until = time.monotonic() + SECONDS_MAX
        while not self.stopped and any(self.next[name] < self.ends[name] for name in left):
            if time.monotonic() >= until:
                self.stopped = f"after {SECONDS_MAX:.0f} s"
                return
            for name, records in (await consumer.poll(POLL_MS)).items():
                for record in records:
                    self._take(name, record, matches)
            for name in left:  # What is no record (a marker of a transaction) is passed over, too.
                if not self.stopped:
                    self.next[name] = max(self.next[name], consumer.position(name) or 0)

    def _take(self, name: TopicPartition, record: Record, matches: Callable[[Record], bool]) -> None:
        if self.stopped or record.offset >= self.ends[name]:
            return
        self.seen += 1
        self.bytes += len(record.key or b"") + len(record.value or b"")
        self.next[name] = record.offset + 1
        if matches(record):
            self.found.append((name, record))
        if len(self.found) >= self.limit:
            self.stopped = f"at {counted(self.limit, 'record')}"
        elif self.bytes >= BYTES_MAX:
            self.stopped = f"at {BYTES_MAX // 1_000_000} MB"

    def sentence(self) -> str:
        """How much was looked at, and why no more."""
        stopped = f"; stopped {self.stopped}" if self.stopped else ""
        return f"{counted(len(self.found), 'record')} of {self.seen:,} looked at{stopped}."

    def words(self) -> list[str]:
        """How far, in each partition."""
        return [
            f"{name}: offsets {self.begin[name]} to {min(self.next[name], end) - 1}, the end is {end}"
            for name, end in sorted(self.ends.items())
            if self.next[name] > self.begin[name]
        ]

    def sorted(self, *, newest_first: bool) -> list[tuple[TopicPartition, Record]]:
        """By time; records of one partition stay in order."""
        key = lambda pair: (pair[1].timestamp, pair[0], pair[1].offset)  # noqa: E731
        return sorted(self.found, key=key, reverse=newest_first)

    def go_on(self, asked: Asked) -> str | None:
        """Where one partition was looked at and there is more."""
        rest = [name for name in self.begin if self.next[name] < self.ends[name]]
        if len(self.begin) != 1 or not rest:
            return None
        more = {"partition": rest[0].partition, "start": OFFSET, "at": self.next[rest[0]]}
        return urlencode({**msgspec.to_builtins(asked), **more})


def _matcher(asked: Asked) -> Callable[[Record], bool]:
    key, value = asked.key.encode(), asked.value.encode()

    def matches(record: Record) -> bool:
        return key in (record.key or b"") and value in (record.value or b"")

    return matches


def _row(partition: TopicPartition, record: Record) -> RecordRow:
    return RecordRow(
        partition.partition,
        record.offset,
        time_text(record.timestamp) if 0 <= record.timestamp < 253_402_300_800_000 else str(record.timestamp),
        shown(record.key),
        shown(record.value),
        [(shown(name.encode("utf-8", "replace")).text or "", shown(value)) for name, value in record.headers],
    )


def shown(value: bytes | None) -> Shown:
    """Whatever it holds, as text that does nothing: control and direction characters are spelt out."""
    if value is None:
        return Shown(None, 0, True, False)
    part = bytes(value[: CHARACTERS_SHOWN * 4])
    try:
        text, is_text = part.decode(), True
    except UnicodeDecodeError as error:
        is_text = len(part) < len(value) and error.start > len(part) - 4
        text = part[: error.start].decode() if is_text else part.hex(" ")
    spelt = "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode()
        for one in text[:CHARACTERS_SHOWN]
    )
    return Shown(spelt, len(value), is_text, len(text) > CHARACTERS_SHOWN or len(part) < len(value))


def _digits(name: str, text: str) -> int:
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) <= OFFSET_DIGITS_MAX:
        return int(text)
    raise CannotLook(f"The {name} is a number, not {text!r}.")


def _time_ms(text: str) -> int:
    try:
        found = read_time(text, datetime.now(UTC))
    except ValueError as error:
        raise CannotLook(f"{error}.") from None
    if found is None:
        raise CannotLook("A time is needed: write 14:02, 14:02:30 or 2026-11-18T14:02 (UTC).")
    return found
