"""``format("ottla_replicas")``: the batch headers of every replica, each read from its own broker.

Only for the audit: one row a batch, and for each replica one row with offset -1, so that it is counted even
without batches. Brokers serve consumers from followers (KIP-392).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.admin.asking import ask_target, until_done
from ottla.client.blocking.client import Client
from ottla.client.config import ConsumerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, sleep
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, TimedOut
from ottla.client.fetching.fetch_partition import fetch_partition
from ottla.model.errors import ErrorCode
from ottla.model.ids import DEBUG_CONSUMER, TopicPartition
from ottla.model.timestamps import EARLIEST
from ottla.records.batch import batches, crc_is_valid
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.options.kafka_settings import KafkaSettings, kafka_settings
from ottla.spark.runtime.connections import client_for
from ottla.wire.apis.fetch import PartitionData
from ottla.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

NAME = "ottla_replicas"
SCHEMA = (
    "topic string, partition int, broker int, base_offset long, last_offset long, leader_epoch int, crc long,"
    " size int, until long, log_start_offset long"
)
METADATA_MS = 60_000
CATCH_UP_MS = 30_000
"""How long a replica may stand still below the end: followers learn the high watermark a little later."""
PAUSE_MS = 200
_ARROW = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}
_COLUMNS = [column.split() for column in SCHEMA.split(", ")]
_ARROW_SCHEMA = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in _COLUMNS])
_LAST_OFFSET = [name for name, _ in _COLUMNS].index("last_offset")


@dataclass(frozen=True)
class Replica(InputPartition):
    """One broker's copy of a partition."""

    partition: TopicPartition
    broker: int
    until: int
    """The leader's high watermark when the audit began: a replica in sync holds all that lies below."""


class ReplicaSource(DataSource):
    """Option ``replicas``: JSON of ``[topic, partition, broker, until]``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        rows = msgspec.json.decode(self.options["replicas"], type=list[tuple[str, int, int, int]])
        replicas = [
            Replica(TopicPartition(topic, number), broker, until) for topic, number, broker, until in rows
        ]
        servers = {"kafka.bootstrap.servers": self.options["kafka.bootstrap.servers"]}
        return _ReplicaReader(kafka_settings(servers, is_sink=False), replicas)


class _ReplicaReader(DataSourceReader):
    def __init__(self, kafka: KafkaSettings, replicas: list[Replica]) -> None:
        self._kafka = kafka
        self._replicas = replicas

    def partitions(self) -> Sequence[InputPartition]:
        return self._replicas

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Replica), "Spark hands back our own partitions"
        return read_replica(client_for(self._kafka.client), self._kafka, partition)


def read_replica(client: Client, kafka: KafkaSettings, replica: Replica) -> Iterator[pa.RecordBatch]:
    """The batches of a replica up to where the audit ends, or as far as it gets. Runs in a task."""
    try:
        yield from _read(client, kafka, replica)
    except ClientError as error:
        raise SparkRefused(
            f"broker {replica.broker} could not be asked for {replica.partition}: {error}",
            "see that it runs, then audit again",
        ) from error


def _read(client: Client, kafka: KafkaSettings, replica: Replica) -> Iterator[pa.RecordBatch]:
    partition, engine = replica.partition, client.engine
    engine.want_topics(partition.topic)
    if not client.run_until(lambda: engine.metadata.partition(partition) is not None, METADATA_MS):
        raise engine.metadata_error or ConnectionLost("no broker says who has it")
    position = log_start = client.run(_log_start, partition, replica.broker)
    moved_ms = engine.now_ms
    while position < replica.until and engine.now_ms - moved_ms < CATCH_UP_MS:
        rows: list[tuple[Any, ...]] = []
        try:
            row = client.run(_fetch, kafka.consumer, partition, position, replica.broker)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            # Its retention was faster than we. Or its log was cut, and the audit finds what is missing.
            log_start = client.run(_log_start, partition, replica.broker)
            position = max(position, log_start)
        else:
            log_start = max(log_start, row.log_start_offset)
            rows = _rows(replica, row, log_start)
        if rows:
            position, moved_ms = rows[-1][_LAST_OFFSET] + 1, engine.now_ms
            yield _arrow(rows)
        else:
            client.run(lambda _: sleep(PAUSE_MS))
    yield _arrow([(*partition, replica.broker, -1, -1, -1, 0, 0, replica.until, log_start)])


def _fetch(
    engine: Engine, config: ConsumerConfig, partition: TopicPartition, position: int, broker: int
) -> Operation[PartitionData]:
    """What one broker, leader or follower, holds from a position on. Tries again while the error may pass."""

    def attempt(_: int) -> Operation[PartitionData]:
        row = yield from fetch_partition(engine, config, partition, position, broker=broker)
        row.records = bytes(row.records) if row.records is not None else None
        return row

    try:
        return (yield from until_done(engine, "Fetch", None, attempt))
    except TimedOut as late:
        raise late.cause or late from late


def _rows(replica: Replica, row: PartitionData, log_start: int) -> list[tuple[Any, ...]]:
    data = row.records or b""
    rows: list[tuple[Any, ...]] = []
    for header in batches(data):
        if not crc_is_valid(data, header):
            raise DataLoss(
                f"broker {replica.broker} holds a corrupt batch at {header.base_offset} of "
                f"{replica.partition}",
                "let it copy the partition again from its leader",
            )
        epoch = header.partition_leader_epoch
        found = (header.base_offset, header.last_offset, epoch, header.crc, header.size)
        rows.append((*replica.partition, replica.broker, *found, replica.until, log_start))
    return rows


def _arrow(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), _ARROW_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)


def _log_start(engine: Engine, partition: TopicPartition, broker: int) -> Operation[int]:
    """Where a broker's own copy begins: each broker's retention works when it likes."""
    row = ListOffsetsPartition(partition_index=partition.partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(
        replica_id=DEBUG_CONSUMER, topics=[ListOffsetsTopic(name=partition.topic, partitions=[row])]
    )
    response = yield from ask_target(engine, broker, request, ListOffsetsResponse)
    (answer,) = [each for topic in response.topics for each in topic.partitions]
    if answer.error_code:
        raise BrokerError(answer.error_code, str(partition))
    return answer.offset
