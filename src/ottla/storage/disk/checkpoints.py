"""Kafka's small text files: checkpoints, ``partition.metadata``, ``meta.properties``.

All are replaced whole, by a synced temporary file and a rename. A file that cannot be read as one of them
raises ``CorruptCheckpoint``; the caller knows whether the log can do without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.model.ids import TopicId, TopicPartition, topic_id_from_text, topic_id_text
from ottla.storage.disk.port import Disk, replace_file

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
IN_USE = ".ottla_in_use"
"""Marks a directory that Ottla writes to. Removed at a clean stop; Kafka does not know it."""

CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
VERSION = 0
LINES_MAX = 10_000_000


class CorruptCheckpoint(ValueError):
    """The file cannot be read as the checkpoint it should be."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Who owns a log directory."""

    broker_id: int | None
    cluster_id: str | None
    version: int = 0


def encode_rows(rows: list[str]) -> bytes:
    """A checkpoint of rows without their newlines."""
    return "\n".join([str(VERSION), str(len(rows)), *rows, ""]).encode()


def decode_rows(content: bytes, name: str) -> list[list[str]]:
    """The rows of a checkpoint: version, count, then as many rows as counted, each with its newline."""
    if content and not content.endswith(b"\n"):
        raise CorruptCheckpoint(f"{name} is cut short")
    try:
        rows = content.decode("utf-8").splitlines()
        if not rows:
            return []
        version, count = int(rows[0]), int(rows[1])
    except (UnicodeDecodeError, ValueError, IndexError):
        raise CorruptCheckpoint(f"{name} does not begin with a version and a count") from None
    if version != VERSION:
        raise CorruptCheckpoint(f"{name} has version {version}")
    if not 0 <= count <= LINES_MAX or count != len(rows) - 2:
        raise CorruptCheckpoint(f"{name} counts {count} rows and has {len(rows) - 2}")
    return [row.split() for row in rows[2:]]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """``topic partition offset`` rows."""
    return encode_rows([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def decode_offsets(content: bytes, name: str = "checkpoint") -> dict[TopicPartition, int]:
    """Read the rows of an offset checkpoint."""
    rows = decode_rows(content, name)
    try:
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except ValueError as error:
        raise CorruptCheckpoint(f"{name}: {error}") from None


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> TopicId:
    """The id of the topic that a partition directory belongs to."""
    try:
        fields = dict(line.split(": ", 1) for line in content.decode("utf-8").splitlines())
        if fields["version"] != "0":
            raise CorruptCheckpoint(f"{PARTITION_METADATA} has version {fields['version']}")
        return topic_id_from_text(fields["topic_id"])
    except (UnicodeDecodeError, KeyError, ValueError) as error:
        if isinstance(error, CorruptCheckpoint):
            raise
        raise CorruptCheckpoint(f"{PARTITION_METADATA}: {error}") from None


def encode_meta_properties(meta: MetaProperties, date_text: str) -> bytes:
    """A Java properties file, as ``java.util.Properties`` stores it."""
    rows = ["#", f"#{date_text}"]
    if meta.cluster_id is not None:
        rows.append(f"cluster.id={meta.cluster_id}")
    rows.append(f"version={meta.version}")
    if meta.broker_id is not None:
        rows.append(f"broker.id={meta.broker_id}")
    return ("\n".join(rows) + "\n").encode()


def decode_meta_properties(content: bytes) -> MetaProperties:
    """Read ``meta.properties``; unknown keys are ignored."""
    fields: dict[str, str] = {}
    try:
        for line in content.decode("utf-8").splitlines():
            text = line.strip()
            if text and text[0] not in "#!":
                key, _, value = text.partition("=")
                fields[key.strip()] = value.strip()
        broker_id = fields.get("broker.id", fields.get("node.id"))
        return MetaProperties(
            broker_id=None if broker_id is None else int(broker_id),
            cluster_id=fields.get("cluster.id"),
            version=int(fields.get("version", "0")),
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise CorruptCheckpoint(f"{META_PROPERTIES}: {error}") from None


def read_offsets(disk: Disk, directory: str, name: str) -> dict[TopicPartition, int]:
    """A log directory's checkpoint; a missing or unreadable one is empty."""
    try:
        return decode_offsets(disk.read_file(f"{directory}/{name}"), name)
    except (FileNotFoundError, CorruptCheckpoint):
        return {}


def write_offsets(disk: Disk, directory: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a log directory's checkpoint."""
    replace_file(disk, f"{directory}/{name}", encode_offsets(offsets))
