"""Where the console consumer begins, and how it goes on."""

import sys
import time

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.options import pattern
from ottla.cli.shared.printing import nobody_reads
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.shared.signals import stop_between
from ottla.cli.tools.console.format import Format, Unprintable
from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.admin.groups import alter_group_offsets
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.blocking.group import GroupConsumer
from ottla.client.config import ConsumerConfig
from ottla.client.errors import ClientError
from ottla.client.group.config import MembershipConfig
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST

COMMIT_S = 5.0
"""Kafka's auto.commit.interval.ms."""
POLL_MS = 500


class Reading:
    """One run of the console consumer: as a member of a group, or with all partitions for itself."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        membership: MembershipConfig,
        how: Format,
        group: str | None,
        skips_errors: bool,
    ) -> None:
        self._client = client
        self._config = config
        self._membership = membership
        self._how = how
        self._group = group
        self._skips_errors = skips_errors
        self._assigned = client.consumer(config)
        self._joined: GroupConsumer | None = None
        self._timestamp_types: dict[str, str] = {}
        self._positions: dict[TopicPartition, int] = {}
        """What was printed of a partition that was named: its group's offset."""
        self._committed_at = time.monotonic()
        self._growing: tuple[str | None, str | None] | None = None
        """The topic, or the pattern of topics, whose new partitions are read as well."""
        self._assignment: list[TopicPartition] = []
        self._looked_at = time.monotonic()

    def begin(
        self,
        topic: str | None,
        include: str | None,
        partition: int | None,
        offset: str | None,
        from_beginning: bool,
    ) -> None:
        """Find the partitions, and join the group or begin at an offset of each."""
        partitions = self._partitions(topic, include, partition)
        if self._how.timestamp or self._how.is_json:
            self._read_timestamp_types({name.topic for name in partitions})
        if partition is not None:
            self._assigned.assign(dict.fromkeys(partitions, _position(offset, from_beginning)))
        elif self._group is None:
            self._growing, self._assignment = (topic, include), partitions
            self._assigned.assign(dict.fromkeys(partitions, _reset_position(self._config)))
        else:
            topics = sorted({name.topic for name in partitions})
            self._joined = self._client.group_consumer(self._group, topics, self._config, self._membership)

    def _partitions(
        self, topic: str | None, include: str | None, partition: int | None
    ) -> list[TopicPartition]:
        found = {row.name: row for row in self._client.run(describe_topics).topics if row.name is not None}
        if topic is not None:
            names = [topic] if topic in found else []
        else:
            wanted = pattern("--include", include or "")
            names = sorted(name for name in found if wanted.fullmatch(name) and not found[name].is_internal)
        if not names:
            raise CommandRefused(f"there is no topic {topic or include}; see `ottla topics --list`")
        partitions = [
            TopicPartition(name, row.partition_index) for name in names for row in found[name].partitions
        ]
        if partition is None:
            return sorted(partitions)
        if TopicPartition(names[0], partition) not in partitions:
            raise CommandRefused(
                f"topic {topic} has {len(partitions)} partitions and no partition {partition}"
            )
        return [TopicPartition(names[0], partition)]

    def look_for_more(self) -> None:
        """Without a group nobody else tells of new partitions: those begin with their first record."""
        self._looked_at = time.monotonic()
        if self._growing is None:
            return
        try:
            there = self._partitions(*self._growing, None)
        except (ClientError, CommandRefused):
            return  # Nobody can be asked, or the topic is gone; both may change.
        new = [name for name in there if name not in self._assignment]
        if new:
            reset = _reset_position(self._config)
            at = {name: self._assigned.position(name) for name in self._assignment}
            self._assigned.assign(
                {name: reset if offset is None else offset for name, offset in at.items()}
                | dict.fromkeys(new, EARLIEST)
            )
            self._assignment += new
            if self._how.timestamp or self._how.is_json:
                self._read_timestamp_types({name.topic for name in new})

    def _read_timestamp_types(self, topics: set[str]) -> None:
        rows = self._client.run(
            describe_configs,
            [(ResourceType.TOPIC, name) for name in sorted(topics)],
            keys=["message.timestamp.type"],
        )
        for row in rows:
            for config in row.configs:
                self._timestamp_types[row.resource_name] = config.value or "CreateTime"

    def run(self, max_messages: int | None, timeout_ms: int | None) -> None:
        """Print until there are enough, none came for too long, or somebody stops it."""
        count = 0
        with stop_between() as stop:
            idle_since = time.monotonic()
            while not stop.asked and (max_messages is None or count < max_messages):
                room = None if max_messages is None else min(max_messages - count, 500)
                idle_ms = int((time.monotonic() - idle_since) * 1000)
                if timeout_ms is not None and idle_ms >= timeout_ms:
                    break
                wait_ms = POLL_MS if timeout_ms is None else min(POLL_MS, timeout_ms - idle_ms)
                printed = self._print(max(wait_ms, 1), room)
                count += printed
                if printed or self._is_joining():
                    idle_since = time.monotonic()
                if not printed and nobody_reads():
                    break
                if time.monotonic() - self._committed_at > COMMIT_S:
                    self._commit()
                if (time.monotonic() - self._looked_at) * 1000 > self._client.config.metadata_max_age_ms:
                    self.look_for_more()
        self._end()
        typer.echo(f"Processed a total of {count} messages", err=True)
        if stop.asked:
            raise typer.Exit(130)

    def _print(self, wait_ms: int, room: int | None) -> int:
        count = 0
        lines: list[bytes] = []
        consumer = self._joined or self._assigned
        for partition, records in consumer.poll(wait_ms, room).items():
            kind = self._timestamp_types.get(partition.topic, "CreateTime")
            for record in records:
                try:
                    lines.append(self._how.line(partition, record, kind))
                except Unprintable as error:
                    if not self._skips_errors:
                        raise CommandRefused(f"{partition} offset {record.offset}: {error}") from None
                self._positions[partition] = record.offset + 1
                count += 1
        if lines:
            sys.stdout.buffer.write(b"".join(lines))
            sys.stdout.buffer.flush()
        return count

    def _is_joining(self) -> bool:
        """Whether the group has not shared its partitions out yet: that time does not count as silence."""
        return self._joined is not None and self._joined.generation < 0

    def _end(self) -> None:
        """Leave the group, with the offsets of what was printed."""
        if self._joined is not None:
            self._joined.close()
        else:
            self._commit()

    def _commit(self) -> None:
        self._committed_at = time.monotonic()
        if self._group is None or self._joined is not None or not self._positions:
            return
        errors = self._client.run(alter_group_offsets, self._group, self._positions)
        for partition, code in errors.items():
            if code:
                raise CommandRefused(f"the offset of {partition} was not committed: {reason(code)}")
        self._positions = {}


def _reset_position(config: ConsumerConfig) -> int:
    """Where to begin without committed offsets."""
    match config.auto_offset_reset:
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
        case _:
            raise CommandRefused(
                "auto.offset.reset=none needs offsets that were committed: name their group with --group"
            )


def _position(offset: str | None, from_beginning: bool) -> int:
    match offset:
        case None:
            return EARLIEST if from_beginning else LATEST
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
        case _ if offset.isdecimal():
            return int(offset)
        case _:
            raise UsageRefused(f"--offset {offset!r} is neither a number nor earliest or latest")
