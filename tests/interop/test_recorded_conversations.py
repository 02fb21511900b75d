"""Two Apache brokers recorded: what they say to clients and to each other encodes to the same bytes again."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.wire.apis import message_classes
from ottla.wire.codec import decode_prefix
from ottla.wire.headers import decode_request_header, decode_response, frame_request, frame_response
from ottla.wire.keys import ApiKey
from support.clusters.history import wait_for_all
from support.processes.apache import ApacheBroker, ApacheZooKeeper, run_tool
from support.processes.broker_process import wait_all_usable
from support.wire.recorder import Conversation, Recorder

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

COUNT = 40
SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class RecordedCluster:
    """Two Apache brokers, each behind a recorder that it advertises as its own address."""

    recorders: list[Recorder]
    bootstrap: str

    def so_far(self) -> list[int]:
        """How many conversations each recorder has heard, to be left out later."""
        return [len(recorder.conversations) for recorder in self.recorders]

    def conversations(self, after: list[int]) -> list[Conversation]:
        return [
            each
            for recorder, count in zip(self.recorders, after, strict=True)
            for each in recorder.conversations[count:]
        ]


def apis_in(conversations: list[Conversation]) -> set[str]:
    """Which APIs were used."""
    frames = [frame for each in conversations for frame in list(each.requests)]
    return {ApiKey(decode_request_header(frame)[0].api_key).name for frame in frames}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedCluster]:
    directory = tmp_path_factory.mktemp("recorded")
    zookeeper = ApacheZooKeeper(directory / "zookeeper")
    with ExitStack() as stack:
        zookeeper.start()
        stack.callback(zookeeper.stop)
        recorders, brokers = [], []
        for broker_id in (1, 2):
            broker = ApacheBroker(
                broker_id,
                zookeeper.connect,
                log_dir=directory / f"broker-{broker_id}",
                default_replication_factor=2,
                offsets_topic_replication_factor=2,
                transaction_state_log_replication_factor=2,
            )
            recorder = stack.enter_context(Recorder(broker.port))
            broker.change_settings(advertised_listeners=f"PLAINTEXT://127.0.0.1:{recorder.port}")
            broker.launch()
            stack.callback(broker.stop)
            recorders.append(recorder)
            brokers.append(broker)
        wait_all_usable(brokers)
        cluster = RecordedCluster(recorders, ",".join(f"127.0.0.1:{each.port}" for each in recorders))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        wait_for_all(admin.create_topics([NewTopic(name, 2, 2) for name in CLIENTS]))
        yield cluster


def with_librdkafka(bootstrap: str) -> None:
    for codec in ("none", "zstd"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
        )
        for number in range(COUNT // 2):
            producer.produce("librdkafka", f"value {number}", key=str(number), headers={"h": "1"})
        assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    got = 0
    while got < COUNT:
        message = consumer.poll(30)
        assert message is not None, f"{got} of {COUNT} records came"
        got += message.error() is None
    consumer.commit(asynchronous=False)
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "rd-txn"})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce("librdkafka", b"in a transaction")
    transactional.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
    )
    transactional.commit_transaction(30)
    consumer.close()


def with_java(bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    lines = "".join(f"{number}\n" for number in range(COUNT))
    produced = run_tool("kafka.tools.ConsoleProducer", *server, "--topic", "java", "--sync", stdin=lines)
    assert produced.exit_code == 0, produced.stderr
    group = (
        "--group",
        "java-group",
        "--from-beginning",
        "--max-messages",
        str(COUNT),
        "--timeout-ms",
        "40000",
    )
    consumed = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *server, "--topic", "java", *group)
    assert sorted(consumed.stdout.split(), key=int) == [str(number) for number in range(COUNT)]
    load = ("--topic", "java", "--num-records", "300", "--record-size", "100", "--throughput", "-1")
    transactional = ("--transaction-duration-ms", "50", "--transactional-id", "java-txn")
    props = ("--producer-props", f"bootstrap.servers={bootstrap}", "compression.type=lz4")
    measured = run_tool("org.apache.kafka.tools.ProducerPerformance", *load, *transactional, *props)
    assert "300 records sent" in measured.stdout, measured.stderr
    for tool, *args in (
        ("TopicCommand", "--describe"),
        ("consumer.group.ConsumerGroupCommand", "--describe", "--all-groups"),
        ("GetOffsetShell", "--topic", "java"),
        ("LogDirsCommand", "--describe"),
        ("TransactionsCommand", "list"),
        ("LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"),
    ):
        run = run_tool(f"org.apache.kafka.tools.{tool}", *server, *args)
        assert run.exit_code == 0, f"{tool}: {run.stdout} {run.stderr}"
    configs = ("--entity-type", "topics", "--entity-name", "java")
    assert run_tool("kafka.admin.ConfigCommand", *server, "--describe", "--all", *configs).exit_code == 0
    changed = run_tool(
        "kafka.admin.ConfigCommand", *server, "--alter", *configs, "--add-config", "retention.ms=99999"
    )
    assert changed.exit_code == 0, changed.stderr


def with_kafka_python(bootstrap: str) -> None:
    with warnings.catch_warnings():  # its schemas are read in a way that Python has given up
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import KafkaConsumer, KafkaProducer
    servers = bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, compression_type="gzip")
    for number in range(COUNT):
        producer.send("kafka-python", f"value {number}".encode(), key=str(number).encode())
    producer.flush(30)
    producer.close()
    consumer = KafkaConsumer(
        "kafka-python",
        bootstrap_servers=servers,
        group_id="kp",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    got = [record.value for record, _ in zip(consumer, range(COUNT), strict=False)]
    assert len(got) == COUNT
    consumer.close()


def with_aiokafka(bootstrap: str) -> None:
    async def talk() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id="aio-txn", compression_type="snappy"
        )
        await producer.start()
        async with producer.transaction():
            for number in range(COUNT):
                await producer.send("aiokafka", f"value {number}".encode())
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "aiokafka",
            bootstrap_servers=bootstrap,
            group_id="aio",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        for _ in range(COUNT):
            await asyncio.wait_for(consumer.getone(), 30)
        await consumer.stop()

    asyncio.run(talk())


CLIENTS = {
    "librdkafka": (
        with_librdkafka,
        {"API_VERSIONS", "METADATA", "INIT_PRODUCER_ID", "ADD_OFFSETS_TO_TXN", "END_TXN"},
    ),
    "java": (
        with_java,
        {"JOIN_GROUP", "DESCRIBE_CONFIGS", "DESCRIBE_LOG_DIRS", "LIST_TRANSACTIONS", "ELECT_LEADERS"},
    ),
    "kafka-python": (with_kafka_python, {"FIND_COORDINATOR", "SYNC_GROUP", "OFFSET_COMMIT", "LEAVE_GROUP"}),
    "aiokafka": (with_aiokafka, {"ADD_PARTITIONS_TO_TXN", "LIST_OFFSETS", "OFFSET_FETCH"}),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("client", CLIENTS)
def test_all_that_a_client_and_kafka_say_is_understood(
    recorded: RecordedCluster, client: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    before = recorded.so_far()
    talk, expected = CLIENTS[client]

    talk(recorded.bootstrap)

    conversations = recorded.conversations(before)
    assert {"PRODUCE", "FETCH"} | expected <= apis_in(conversations)
    for conversation in conversations:
        check(conversation)


def test_all_that_brokers_say_to_each_other_is_understood(recorded: RecordedCluster) -> None:
    needed = {"LEADER_AND_ISR", "UPDATE_METADATA", "FETCH", "PRODUCE"}
    from_the_start = [0, 0]
    producer = Producer({"bootstrap.servers": recorded.bootstrap, "acks": "all", "log_level": 0})
    for number in range(COUNT):
        producer.produce("librdkafka", f"for the followers {number}")
        assert producer.flush(30) == 0

    conversations = recorded.conversations(from_the_start)

    assert needed <= apis_in(conversations)
    assert sum(check(conversation) for conversation in conversations) > COUNT


def check(conversation: Conversation) -> int:
    """Decode and encode both sides; the number of answered requests."""
    asked: dict[int, tuple[type[Any], int]] = {}
    answered = list(conversation.responses)
    for frame in list(conversation.requests):
        header, position = decode_request_header(frame)
        request_class, response_class = message_classes(ApiKey(header.api_key))
        request, end = decode_prefix(request_class, header.api_version, memoryview(frame), position)
        again = b"".join(frame_request(request, header.api_version, header.correlation_id, header.client_id))
        assert end == len(frame), f"{header} has bytes left over"
        assert again[SIZE_BYTES:] == frame, f"{header} becomes other bytes"
        asked[header.correlation_id] = (response_class, header.api_version)
    for frame in answered:
        correlation_id = int.from_bytes(frame[:SIZE_BYTES], signed=True)
        response_class, version = asked[correlation_id]
        _, response = decode_response(response_class, version, memoryview(frame))
        again = b"".join(frame_response(response, version, correlation_id))
        assert again[SIZE_BYTES:] == frame, f"{response_class.__name__} v{version} becomes other bytes"
    return len(answered)
