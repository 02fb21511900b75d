"""Replicas read side by side: every batch the same, at the same offset, with the same checksum."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import typer

from ottla.cli.shared.offsets import offsets_at
from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import nobody_reads, print_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import stop_between
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import BrokerLane, Operation, ask, sleep
from ottla.client.errors import ClientError
from ottla.client.fetching.fetch_partition import LAST_VERSION_WITH_NAMES
from ottla.model.ids import DEBUG_CONSUMER, TopicPartition
from ottla.model.timestamps import LATEST
from ottla.records.batch import BatchHeader, batches
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

LANE = "verification"
PAUSE_MS = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """How far the replicas of a partition agree, and where they do not."""

    next_offset: int
    differences: tuple[str, ...] = ()
    is_torn: bool = False
    """Batches end at different offsets: nothing behind can be compared."""


def compare(partition: TopicPartition, start: int, replicas: Mapping[int, PartitionData]) -> Compared:
    """Batch by batch, as far as all replicas have them committed."""
    found = {number: list(_committed(data)) for number, data in sorted(replicas.items())}
    next_offset = start
    differences: list[str] = []
    for row in zip(*found.values(), strict=False):
        first, *others = zip(found, row, strict=True)
        for number, batch in others:
            if batch.last_offset != first[1].last_offset:
                words = (
                    f"partition {partition}: replica {first[0]}'s offset {first[1].last_offset}"
                    f" doesn't match replica {number}'s offset {batch.last_offset}"
                )
                return Compared(next_offset, (*differences, words), is_torn=True)
            if batch.crc != first[1].crc:
                differences.append(
                    f"partition {partition} has unmatched checksum at offset {batch.last_offset};"
                    f" replica {first[0]}'s checksum {first[1].crc};"
                    f" replica {number}'s checksum {batch.crc}"
                )
        next_offset = first[1].last_offset + 1
    return Compared(next_offset, tuple(differences))


def _committed(data: PartitionData) -> Iterable[BatchHeader]:
    if data.error_code or not data.records:
        return
    for batch in batches(data.records):
        if batch.last_offset >= data.high_watermark:
            return
        yield batch


class Comparison:
    """One run over the partitions of some topics."""

    def __init__(
        self, client: Client, wanted: re.Pattern[str], time_ms: int, fetch_size: int, max_wait_ms: int
    ) -> None:
        self._client = client
        self._fetch_size = fetch_size
        self._max_wait_ms = max_wait_ms
        self._replicas = self._find(wanted)
        self._offsets = offsets_at(client, dict.fromkeys(self._replicas, time_ms))
        self._ends = offsets_at(client, dict.fromkeys(self._replicas, LATEST))
        for name, offset in self._offsets.items():
            if offset < 0:
                self._offsets[name] = self._ends[name]
        self._lag = (-1, "none", -1)
        """The largest of the last round: how much, where, from which offset on."""
        self.differences = 0
        self._different: Counter[TopicPartition] = Counter()
        self._is_for_people = True

    def _find(self, wanted: re.Pattern[str]) -> dict[TopicPartition, tuple[int, ...]]:
        found = {
            TopicPartition(row.name, partition.partition_index): partition.replica_nodes
            for row in self._client.run(describe_topics).topics
            if row.name is not None and wanted.fullmatch(row.name)
            for partition in row.partitions
        }
        if not found:
            raise CommandRefused(f"no topic is named like {wanted.pattern}; see `ottla topics --list`")
        alive = self._client.engine.metadata.brokers
        gone = sorted({number for numbers in found.values() for number in numbers} - alive.keys())
        if gone:
            raise CommandRefused(
                f"broker {gone[0]} is not alive, its replicas cannot be read; start it first"
            )
        return found

    def run(self, report_interval_ms: int, *, is_once: bool, output: Output = Output.TABLE) -> None:
        """Compare round by round; tell the lag now and then, and every difference.

        For other programs there is a row for each partition at the end, and what is told goes to stderr.
        """
        self._is_for_people = output is Output.TABLE
        self._tell("verification process is started")
        with stop_between() as stop:
            told_at = time.monotonic()
            while not (stop.asked or (is_once and self._is_through()) or nobody_reads()):
                self._round()
                if (time.monotonic() - told_at) * 1000 > report_interval_ms:
                    told_at = time.monotonic()
                    self._tell_lag()
            if not stop.asked:
                self._tell_lag()
        if not self._is_for_people:
            print_rows(self.rows(), output)
        if self.differences:
            raise CommandRefused(f"replicas differ in {self.differences} places; see the lines above")
        if stop.asked:
            raise typer.Exit(130)

    def rows(self) -> list[dict[str, object]]:
        """Each partition: up to which offset it was compared, and in how many batches replicas differ."""
        return [
            {
                "topic": name.topic,
                "partition": name.partition,
                "replicas": self._replicas[name],
                "compared_to": offset,
                "differences": self._different[name],
            }
            for name, offset in sorted(self._offsets.items())
        ]

    def _tell(self, words: str) -> None:
        now = datetime.now().astimezone()
        line = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}: {words}"
        typer.echo(line, err=not self._is_for_people)

    def _is_through(self) -> bool:
        return all(self._offsets.get(name, 0) >= end for name, end in self._ends.items())

    def _round(self) -> None:
        fetched = self._client.run(self._fetch_all)
        lag = (-1, "none", -1)
        for name, replicas in fetched.items():
            if len(replicas) < len(self._replicas[name]):
                continue
            compared = compare(name, self._offsets[name], replicas)
            for words in compared.differences:
                self.differences += 1
                self._different[name] += 1
                self._tell(words)
            if compared.is_torn:
                raise CommandRefused(f"{name}: replicas hold different batches; nothing behind was compared")
            self._offsets[name] = compared.next_offset
            behind = max(data.high_watermark for data in replicas.values()) - compared.next_offset
            lag = max(lag, (behind, str(name), compared.next_offset))
        self._lag = lag

    def _tell_lag(self) -> None:
        lag, name, offset = self._lag
        count = len(self._replicas)
        self._tell(f"max lag is {lag} for partition {name} at offset {offset} among {count} partitions")

    def _fetch_all(self, engine: Engine) -> Operation[dict[TopicPartition, dict[int, PartitionData]]]:
        """What every replica has at its offset; a broker that does not answer is missing."""
        brokers = sorted({number for numbers in self._replicas.values() for number in numbers})
        tasks = {
            number: engine.spawn(self._fetch(number))
            for number in brokers
            if number in engine.metadata.brokers
        }
        found: dict[TopicPartition, dict[int, PartitionData]] = {name: {} for name in self._offsets}
        for number, task in tasks.items():
            try:
                response = yield from engine.join(task)
            except ClientError:
                engine.refresh_soon()
                yield from sleep(PAUSE_MS)
                continue
            for topic in response.responses:
                for data in topic.partitions:
                    found[TopicPartition(topic.topic, data.partition_index)][number] = data
        return found

    def _fetch(self, broker: int) -> Operation[FetchResponse]:
        topics: dict[str, list[FetchPartition]] = {}
        for name, offset in self._offsets.items():
            if broker in self._replicas[name]:
                row = FetchPartition(
                    partition=name.partition,
                    fetch_offset=offset,
                    log_start_offset=0,
                    partition_max_bytes=self._fetch_size,
                )
                topics.setdefault(name.topic, []).append(row)
        request = FetchRequest(
            replica_id=DEBUG_CONSUMER,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            topics=[FetchTopic(topic=name, partitions=rows) for name, rows in topics.items()],
        )
        return ask(BrokerLane(broker, LANE), request, FetchResponse, version_max=LAST_VERSION_WITH_NAMES)
