"""``format("ottla_replicas")``: the batch headers of every replica, each read from its own broker.

Only for the audit: one row a batch, and for a replica without batches one row with offset -1, so that it is
counted. Brokers serve consumers from followers (KIP-392).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.client.blocking import Client
from ottla.client.errors import BrokerError
from ottla.client.fetching.offsets import EARLIEST, list_offsets
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import batches, crc_is_valid
from ottla.spark.connections import client_for
from ottla.spark.errors import DataLoss
from ottla.spark.fetching import fetch_from
from ottla.spark.kafka_settings import KafkaSettings, kafka_settings

NAME = "ottla_replicas"
SCHEMA = (
    "topic string, partition int, broker int, base_offset long, last_offset long, leader_epoch int, crc long,"
    " size int, high_watermark long, log_start_offset long"
)
METADATA_MS = 60_000
_ARROW = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}
_COLUMNS = [column.split() for column in SCHEMA.split(", ")]
_ARROW_SCHEMA = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in _COLUMNS])


@dataclass(frozen=True)
class Replica(InputPartition):
    """One broker's copy of a partition."""

    partition: TopicPartition
    broker: int


class ReplicaSource(DataSource):
    """Option ``replicas``: JSON of ``[topic, partition, broker]``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        rows = msgspec.json.decode(self.options["replicas"], type=list[tuple[str, int, int]])
        replicas = [Replica(TopicPartition(topic, number), broker) for topic, number, broker in rows]
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
    """The batches of a replica up to its high watermark. Runs in a task."""
    partition = replica.partition
    client.engine.want_topics(partition.topic)
    client.run_until(lambda: client.engine.metadata.partition(partition) is not None, METADATA_MS)
    position, end = 0, None
    while end is None or position < end:
        try:
            row = client.run(fetch_from, kafka.consumer, partition, position, replica.broker)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or position:
                raise
            position = client.run(list_offsets, {partition: EARLIEST})[partition].offset
            continue
        end = row.high_watermark
        rows: list[tuple[Any, ...]] = []
        data = row.records or b""
        limits = (row.high_watermark, row.log_start_offset)
        for header in batches(data):
            if not crc_is_valid(data, header):
                raise DataLoss(
                    f"broker {replica.broker} holds a corrupt batch at {header.base_offset} of {partition}",
                    "let it copy the partition again from its leader",
                )
            epoch = header.partition_leader_epoch
            found = (header.base_offset, header.last_offset, epoch, header.crc, header.size)
            rows.append((*partition, replica.broker, *found, *limits))
            position = header.end_offset
        if not rows:
            rows.append((*partition, replica.broker, -1, -1, -1, 0, 0, *limits))
            position = end
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), _ARROW_SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)
