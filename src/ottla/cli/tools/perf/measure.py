"""Written and read as fast as it goes, with the lines that Kafka's tools print."""

import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import typer

from ottla.cli.shared.connection import sentence
from ottla.cli.shared.options import Output, read_text
from ottla.cli.shared.printing import print_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import stop_between
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.config import ConsumerConfig, ProducerConfig
from ottla.client.errors import ClientError
from ottla.client.group.config import MembershipConfig
from ottla.client.producing.batches import Delivery

WINDOW_MS = 5_000
MIB = 1024.0 * 1024.0
_HEADER = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
_HEADER_END = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_GAVE_UP = (
    "WARNING: Exiting before consuming the expected number of messages: timeout ({} ms) exceeded."
    " You can use the --timeout option to increase the timeout."
)
_MILLISECONDS = "\N{REPLACEMENT CHARACTER}"
"""Stands for them until ``strftime``, which knows only microseconds, is done."""
_JAVA_LETTERS = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}


def random_payloads(size: int) -> Iterator[bytes]:
    """Capital letters, the same in every run."""
    dice = random.Random(0)
    letters = bytes(range(65, 91))
    while True:
        yield bytes(dice.choices(letters, k=size))


def numbered_payloads() -> Iterator[bytes]:
    """0, 1, 2 ..."""
    number = 0
    while True:
        yield str(number).encode()
        number += 1


def payloads_of(file: Path, delimiter: str) -> Iterator[bytes]:
    """Parts of a file, drawn by chance."""
    typer.echo(f"Reading payloads from: {file.absolute()}")
    parts = read_text(file).split("\n" if delimiter == "\\n" else delimiter)
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise CommandRefused(f"{file} is empty: there is nothing to send")
    typer.echo(f"Number of messages read: {len(parts)}")
    payloads = [part.encode() for part in parts]
    return (random.choice(payloads) for _ in iter(int, 1))


@dataclass(slots=True)
class Window:
    """Deliveries since a moment."""

    start_ms: float
    latencies: list[float] = field(default_factory=list)
    byte_count: int = 0

    def rates(self, now_ms: float) -> tuple[float, float]:
        """Records a second and MB a second."""
        elapsed_ms = max(now_ms - self.start_ms, 0.001)
        count = len(self.latencies)
        return 1000.0 * count / elapsed_ms, 1000.0 * self.byte_count / elapsed_ms / MIB

    def line(self, now_ms: float) -> str:
        """What Kafka's tool says every five seconds."""
        records, megabytes = self.rates(now_ms)
        mean = sum(self.latencies) / len(self.latencies)
        return (
            f"{len(self.latencies)} records sent, {records:.1f} records/sec ({megabytes:.2f} MB/sec),"
            f" {mean:.1f} ms avg latency, {max(self.latencies):.1f} ms max latency."
        )

    def totals(self, now_ms: float) -> dict[str, float]:
        """What there is to say at the end; times are milliseconds."""
        records, megabytes = self.rates(now_ms)
        ordered = sorted(self.latencies)
        count = len(ordered)
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
        return {
            "records": count,
            "records_per_second": records,
            "mb_per_second": megabytes,
            "mean_ms": sum(ordered) / count if count else 0.0,
            "max_ms": ordered[-1] if count else 0.0,
            **{
                f"{name}_ms": int(ordered[min(int(share * count), count - 1)]) if count else 0
                for name, share in shares.items()
            },
        }

    def total_line(self, now_ms: float) -> str:
        """The same in the words of Kafka's tool."""
        said = self.totals(now_ms)
        return (
            f"{said['records']} records sent, {said['records_per_second']:f} records/sec"
            f" ({said['mb_per_second']:.2f} MB/sec), {said['mean_ms']:.2f} ms avg latency,"
            f" {said['max_ms']:.2f} ms max latency, {said['p50_ms']} ms 50th, {said['p95_ms']} ms 95th,"
            f" {said['p99_ms']} ms 99th, {said['p99.9_ms']} ms 99.9th."
        )


class Deliveries:
    """What became of the records sent so far."""

    def __init__(self, *, is_told: bool) -> None:
        self._is_told = is_told
        now_ms = _now_ms()
        self.total = Window(now_ms)
        self._window = Window(now_ms)
        self.failures: list[ClientError] = []

    def callback(self, size: int) -> Callable[[Delivery], None]:
        """For a record that is sent now."""
        sent_ms = _now_ms()

        def note(delivery: Delivery) -> None:
            if delivery.error is not None:
                self.failures.append(delivery.error)
                return
            now_ms = _now_ms()
            for window in (self.total, self._window):
                window.latencies.append(now_ms - sent_ms)
                window.byte_count += size
            if self._is_told and now_ms - self._window.start_ms >= WINDOW_MS:
                typer.echo(self._window.line(now_ms))
                self._window = Window(now_ms)

        return note


def produce_records(
    client: Client,
    config: ProducerConfig,
    topic: str,
    count: int,
    rate: float,
    payloads: Iterator[bytes],
    output: Output = Output.TABLE,
) -> None:
    """Send so many records, not faster than the rate, and tell how it went."""
    producer = client.producer(config)
    deliveries = Deliveries(is_told=output is Output.TABLE)
    begun = time.monotonic()
    with stop_between() as stop:
        for number, payload in zip(range(count), payloads, strict=False):
            if stop.asked:
                break
            note = deliveries.callback(len(payload))
            producer.send(topic, payload).when_done(note)
            ahead_s = (number + 1) / rate - (time.monotonic() - begun) if rate > 0 else 0.0
            if ahead_s > 0:
                client.run_until(lambda: False, max(1, int(ahead_s * 1000)))
        producer.flush()
    if output is Output.TABLE:
        typer.echo(deliveries.total.total_line(_now_ms()))
    else:
        print_rows([deliveries.total.totals(_now_ms())], output)
    if deliveries.failures:
        why = sentence(deliveries.failures[0])
        raise CommandRefused(f"{len(deliveries.failures)} of {count} records were not delivered: {why}")
    if stop.asked:
        raise typer.Exit(130)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, by which group, and for how long at most without a record."""

    topic: str
    count: int
    group: str | None
    timeout_ms: int
    config: ConsumerConfig
    membership: MembershipConfig


@dataclass(slots=True)
class Progress:
    """How much was read since a moment, and how long the group took to share the partitions out."""

    start_ms: float
    byte_count: int = 0
    count: int = 0
    joining_ms: float = 0.0


def consume_records(
    client: Client,
    reading: Reading,
    show_time: Callable[[float], str],
    *,
    interval_ms: int | None,
    has_header: bool,
    output: Output = Output.TABLE,
) -> None:
    """Join, read so many records, and tell how it went."""
    if client.run(describe_topics, [reading.topic]).topics[0].error_code:
        raise CommandRefused(f"there is no topic {reading.topic}; see `ottla topics --list`")
    names = f"{'start.time, end.time' if interval_ms is None else 'time, threadId'}, {_HEADER}, {_HEADER_END}"
    rows: list[dict[str, str]] = []

    def tell(first: str, second: str, rates: str) -> None:
        if output is Output.TABLE:
            typer.echo(f"{first}, {second}, {rates}")
        else:
            rows.append(dict(zip(names.split(", "), (first, second, *rates.split(", ")), strict=True)))

    if has_header and output is Output.TABLE:
        typer.echo(names)
    begun_ms = _now_ms()
    total, window = Progress(begun_ms), Progress(begun_ms)
    group = reading.group or f"perf-consumer-{random.randrange(100_000)}"
    consumer = client.group_consumer(group, [reading.topic], reading.config, reading.membership)
    generation, turn_ms, idle_ms = -1, begun_ms, 0.0
    with stop_between() as stop:
        while not stop.asked and total.count < reading.count and idle_ms <= reading.timeout_ms:
            before_ms = turn_ms
            polled = consumer.poll(100)
            turn_ms = _now_ms()
            if consumer.generation != generation and consumer.assignment:
                generation = consumer.generation
                since_ms = begun_ms if not total.joining_ms else before_ms
                for progress in (total, window):
                    progress.joining_ms += turn_ms - since_ms
            records = [record for part in polled.values() for record in part]
            size = sum(len(record.key or b"") + len(record.value or b"") for record in records)
            for progress in (total, window):
                progress.count += len(records)
                progress.byte_count += size
            idle_ms = 0.0 if records else idle_ms + turn_ms - before_ms
            if interval_ms is not None and turn_ms - window.start_ms >= interval_ms and records:
                tell(show_time(turn_ms), "0", _rates(total, window, turn_ms))
                window = Progress(turn_ms)
        if total.count < reading.count and not stop.asked:
            typer.echo(_GAVE_UP.format(reading.timeout_ms), err=output is not Output.TABLE)
    consumer.close()
    if interval_ms is None:
        tell(show_time(begun_ms), show_time(turn_ms), _rates(total, total, turn_ms))
    if output is not Output.TABLE:
        print_rows(rows, output)
    if stop.asked:
        raise typer.Exit(130)


def _rates(total: Progress, part: Progress, now_ms: float) -> str:
    """The columns after the times: amounts in all, rates of the part."""
    elapsed_s = max(now_ms - part.start_ms, 1.0) / 1000.0
    fetching_s = max(now_ms - part.start_ms - part.joining_ms, 1.0) / 1000.0
    megabytes = part.byte_count / MIB
    return (
        f"{total.byte_count / MIB:.4f}, {megabytes / elapsed_s:.4f}, {total.count},"
        f" {part.count / elapsed_s:.4f}, {part.joining_ms:.0f}, {fetching_s * 1000:.0f},"
        f" {megabytes / fetching_s:.4f}, {part.count / fetching_s:.4f}"
    )


def time_format(java: str) -> Callable[[float], str]:
    """Java's date letters as a function of milliseconds; a letter that is not known raises ``ValueError``."""
    parts: list[str] = []
    for run in re.findall(r"'[^']*'|y+|M+|d+|H+|m+|s+|S+|[^A-Za-z']+|.", java):
        if run.startswith("'"):
            parts.append(run[1:-1].replace("%", "%%"))
        elif run[0] == "S":
            parts.append(_MILLISECONDS)
        elif run[0] in _JAVA_LETTERS:
            parts.append(_JAVA_LETTERS[run[0]])
        elif run[0].isalpha():
            raise ValueError(f"the letter {run[0]} is not known")
        else:
            parts.append(run.replace("%", "%%"))
    layout = "".join(parts)

    def show(time_ms: float) -> str:
        moment = datetime.fromtimestamp(time_ms / 1000).astimezone()
        return moment.strftime(layout).replace(_MILLISECONDS, f"{moment.microsecond // 1000:03d}")

    return show


def _now_ms() -> float:
    return time.time() * 1000
