"""The steps of exactly-once writing, done on a cluster with Kafka's transactions."""

import time
import zlib
from collections.abc import Sequence

from ottla.client.admin.asking import TRANSACTION
from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.admin.transactions import describe_transaction, list_transactions
from ottla.client.blocking.client import Client
from ottla.client.config import ProducerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, sleep
from ottla.client.errors import BrokerError, ClientError, TransactionFailed
from ottla.client.fetching.offsets import list_offsets
from ottla.client.producing import transaction_requests as requests
from ottla.client.producing.coordinator import Coordinator
from ottla.client.producing.produce_batch import produce_batch
from ottla.client.producing.transaction_errors import Step
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.spark.errors import SparkRefused
from ottla.spark.exactly_once.decision import SINKS_TOPIC, Decision, Driver, Prepared, decode, encode
from ottla.spark.exactly_once.ids import driver_id, is_ours
from ottla.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from ottla.wire.apis.end_txn import EndTxnResponse
from ottla.wire.apis.init_producer_id import InitProducerIdResponse

NEW = (-1, -1)
PARTITIONS = 16
COPIES = 3
DECIDE_TIMEOUT_MS = 30_000
"""A driver that dies in the middle of a decision holds up readers of its partition for so long."""
READ_MS = 20
READ_S_MAX = 120.0
_OPEN = "Ongoing"
_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "unclean.leader.election.enable": "false",
}


class KafkaCluster:
    """The cluster, for one sink."""

    def __init__(self, client: Client, config: ProducerConfig, prefix: str) -> None:
        self._client = client
        self._config = config
        self._prefix = prefix
        self._log: TopicPartition | None = None

    def take_over(self) -> Driver:
        producer, epoch = self._client.run(
            init_producer, driver_id(self._prefix), DECIDE_TIMEOUT_MS, self._config.max_block_ms
        )
        return Driver(producer, epoch)

    def is_current(self, driver: Driver) -> bool:
        state = self._client.run(describe_transaction, driver_id(self._prefix))
        return (state.producer_id, state.producer_epoch) == (driver.producer, driver.epoch)

    def last_decision(self) -> Decision | None:
        """Read up to the end as it is now, committed records alone.

        Another sink's decision that is under way in the same partition holds this up until it has ended.
        """
        log = self._partition()
        first = self._client.run(list_offsets, {log: EARLIEST})[log].offset
        end = self._client.run(list_offsets, {log: LATEST})[log].offset
        found: Decision | None = None
        if first >= end:
            return None
        with Client(self._client.config) as own:
            consumer = own.consumer(isolation_level="read_committed", max_poll_records=5_000)
            consumer.assign({log: first})
            deadline = time.monotonic() + READ_S_MAX
            while (consumer.position(log) or first) < end:
                if time.monotonic() > deadline:
                    raise SparkRefused(
                        f"{log} could not be read to its end within {READ_S_MAX:.0f} s",
                        "see with `ottla transactions list` which transaction holds it up",
                    )
                for record in consumer.poll(READ_MS).get(log, ()):
                    if record.key == self._prefix.encode() and record.value is not None:
                        found = decode(record.value)
        return found

    def write(self, driver: Driver, decision: Decision) -> Driver:
        try:
            self._client.run(
                _write, self._prefix, self._partition(), driver, encode(decision), self._config.max_block_ms
            )
        except TransactionFailed as error:
            raise SparkRefused(
                f"{decision.batch} was not written: another query has taken over option "
                f"transactionalIdPrefix={self._prefix!r} ({error})",
                "let one query at a time use it, or give this one another",
            ) from error
        return driver.after_write()

    def commit(self, transactions: Sequence[Prepared]) -> list[str]:
        return self._client.run(_end_all, transactions, True, self._config.max_block_ms)

    def abort(self, transactions: Sequence[Prepared]) -> None:
        self._client.run(_end_all, transactions, False, self._config.max_block_ms)

    def sweep(self, driver: Driver) -> None:
        listed = self._client.run(list_transactions)
        names = [
            row.transactional_id
            for rows in listed.values()
            for row in rows
            if row.transaction_state == _OPEN and is_ours(self._prefix, row.transactional_id, driver.epoch)
        ]
        self._client.run(_take_all, names, self._config.transaction_timeout_ms, self._config.max_block_ms)

    def _partition(self) -> TopicPartition:
        if self._log is None:
            count = self._client.run(_sinks_topic)
            self._log = TopicPartition(SINKS_TOPIC, zlib.crc32(self._prefix.encode()) % count)
        return self._log


def init_producer(engine: Engine, name: str, timeout_ms: int, limit_ms: int) -> Operation[tuple[int, int]]:
    """Take a transactional id over; an open transaction of whoever had it is aborted."""
    answer = yield from Coordinator(engine, name, TRANSACTION).ask(
        Step.INIT,
        requests.init_producer(name, timeout_ms, NEW),
        InitProducerIdResponse,
        lambda answer: [answer.error_code],
        limit_ms,
    )
    return answer.producer_id, answer.producer_epoch


def _write(
    engine: Engine, prefix: str, log: TopicPartition, driver: Driver, value: bytes, limit_ms: int
) -> Operation[None]:
    """One decision, in a transaction of its own: the coordinator refuses a driver that was replaced."""
    name, producer = driver_id(prefix), (driver.producer, driver.epoch)
    coordinator = Coordinator(engine, name, TRANSACTION)
    yield from coordinator.ask(
        Step.ADD_PARTITIONS,
        requests.add_partitions(name, producer, [log]),
        AddPartitionsToTxnResponse,
        requests.partition_codes,
        limit_ms,
        version_max=requests.ADD_PARTITIONS_VERSION_MAX,
    )
    record = Record(prefix.encode(), value, timestamp=time.time_ns() // 1_000_000)
    batch = build_batch(
        [record],
        producer_id=driver.producer,
        producer_epoch=driver.epoch,
        base_sequence=driver.written,
        is_transactional=True,
    )
    yield from _produced(engine, log, bytes(batch), name, limit_ms)
    yield from coordinator.ask(
        Step.END,
        requests.end(name, producer, commit=True),
        EndTxnResponse,
        lambda answer: [answer.error_code],
        limit_ms,
    )


def _produced(engine: Engine, log: TopicPartition, batch: bytes, name: str, limit_ms: int) -> Operation[None]:
    engine.want_topics(log.topic)
    began_ms, attempts = engine.now_ms, 0
    while True:
        try:
            yield from produce_batch(engine, -1, log, batch, name)
            return
        except ClientError as error:
            if isinstance(error, BrokerError) and error.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return
            if not error.is_retriable or engine.now_ms - began_ms >= limit_ms:
                raise
        attempts += 1
        yield from sleep(engine.backoff_ms(attempts))


def _end_all(
    engine: Engine, transactions: Sequence[Prepared], commit: bool, limit_ms: int
) -> Operation[list[str]]:
    """End all at once; the ids of those that are not ours to end any more."""
    tasks = {each.id: engine.spawn(_end(engine, each, commit, limit_ms)) for each in transactions}
    gone = []
    for name, task in tasks.items():
        try:
            yield from engine.join(task)
        except TransactionFailed:
            gone.append(name)
    return gone


def _end(engine: Engine, one: Prepared, commit: bool, limit_ms: int) -> Operation[None]:
    yield from Coordinator(engine, one.id, TRANSACTION).ask(
        Step.END,
        requests.end(one.id, (one.producer, one.epoch), commit=commit),
        EndTxnResponse,
        lambda answer: [answer.error_code],
        limit_ms,
    )


def _take_all(engine: Engine, names: Sequence[str], timeout_ms: int, limit_ms: int) -> Operation[None]:
    tasks = [engine.spawn(init_producer(engine, name, timeout_ms, limit_ms)) for name in names]
    for task in tasks:
        yield from engine.join(task)


def _sinks_topic(engine: Engine) -> Operation[int]:
    """How many partitions it has; it is made where it is missing."""
    from ottla.spark.read.offsets import settled_topics

    while True:
        response = yield from settled_topics(engine, [SINKS_TOPIC])
        (topic,) = response.topics
        if not topic.error_code:
            return len(topic.partitions)
        made = a_topic(
            SINKS_TOPIC,
            partitions=PARTITIONS,
            replication_factor=min(COPIES, len(response.brokers)),
            configs=_SETTINGS,
        )
        (row,) = yield from create_topics(engine, [made])
        if row.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise BrokerError(row.error_code, f"{SINKS_TOPIC}: {row.error_message or ''}")
