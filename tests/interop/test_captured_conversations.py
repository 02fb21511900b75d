"""What real clients and a real broker say to each other is decoded to the last byte, and encodes the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.wire.apis import message_classes
from ottla.wire.codec import decode_prefix, encode_bytes
from ottla.wire.headers import decode_request_header, decode_response, frame_response
from ottla.wire.keys import ApiKey
from support.processes.apache import ApacheCluster, run_tool
from support.wire.recorder import Conversation, Recorder

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """A broker that tells its clients to come through the proxy."""
    directory: Path = tmp_path_factory.mktemp("captured")
    with Recorder() as proxy:
        advertised = f"PLAINTEXT://127.0.0.1:{proxy.port}"
        cluster = ApacheCluster(directory, advertised_listeners=advertised)
        (broker,) = cluster.brokers.values()
        proxy.upstream_port = broker.port
        try:
            cluster.start()
            yield proxy
        finally:
            cluster.stop()


REFUSED_BY_NAME = {ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.CONSUMER_GROUP_HEARTBEAT}
"""Clients ask Apache's broker for them, too; Ottla has no tables of what it refuses."""


def checked(conversation: Conversation) -> list[tuple[ApiKey, int]]:
    """Read and write again every request and its response; what was spoken, by API and version."""
    spoken = []
    responses = iter(conversation.responses)
    for frame in list(conversation.requests):
        header, body = decode_request_header(frame)
        api_key, version = ApiKey(header.api_key), header.api_version
        if api_key in REFUSED_BY_NAME:
            next(responses, None)
            continue
        request_class, response_class = message_classes(api_key)
        request, end = decode_prefix(request_class, version, frame, body)
        assert end == len(frame), f"{api_key.name} v{version} has bytes left over"
        assert encode_bytes(request, version) == frame[body:]
        spoken.append((api_key, version))
        if getattr(request, "acks", None) == 0:
            continue
        answer = next(responses, None)
        if answer is None:
            break
        correlation_id, response = decode_response(response_class, version, answer)
        assert correlation_id == header.correlation_id
        assert b"".join(frame_response(response, version, correlation_id))[4:] == answer
    return spoken


def spoken_since(proxy: Recorder, start: int) -> set[ApiKey]:
    conversations = proxy.conversations[start:]
    assert conversations
    return {api_key for conversation in conversations for api_key, _ in checked(conversation)}


BASICS = {ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH}
GROUP = {ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_FETCH}


def test_what_librdkafka_says_and_hears_is_understood(proxy: Recorder) -> None:
    start = len(proxy.conversations)
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{proxy.port}", "log_level": 0}
    admin = AdminClient(bootstrap)
    admin.create_topics([NewTopic("rdk", 3, 1)])["rdk"].result(20)
    for settings in ({"acks": 0}, {"enable.idempotence": True, "compression.type": "zstd"}):
        producer = Producer(bootstrap | settings)
        for n in range(100):
            producer.produce("rdk", b"v%d" % n, key=b"k%d" % n)
        assert producer.flush(20) == 0
    transactional = Producer(bootstrap | {"transactional.id": "rdk"})
    transactional.init_transactions(20)
    transactional.begin_transaction()
    transactional.produce("rdk", b"x")
    transactional.commit_transaction(20)
    consumer = Consumer(bootstrap | {"group.id": "rdk", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rdk"])
    assert len(consumer.consume(50, timeout=20)) == 50
    consumer.commit(asynchronous=False)
    consumer.close()
    admin.list_consumer_groups().result(20)
    admin.describe_consumer_groups(["rdk"])["rdk"].result(20)
    admin.delete_topics(["rdk"])["rdk"].result(20)

    extra = {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN, ApiKey.LIST_GROUPS}
    assert BASICS | GROUP | extra <= spoken_since(proxy, start)


def test_what_the_java_clients_say_and_hear_is_understood(proxy: Recorder) -> None:
    start = len(proxy.conversations)
    server = f"127.0.0.1:{proxy.port}"
    topics = "org.apache.kafka.tools.TopicCommand"
    made = run_tool(topics, "--bootstrap-server", server, "--create", "--topic", "java", "--partitions", "2")
    assert made.exit_code == 0, made.stderr
    sent = run_tool(
        "kafka.tools.ConsoleProducer",
        *("--bootstrap-server", server, "--topic", "java", "--compression-codec", "lz4"),
        stdin="".join(f"line {n}\n" for n in range(50)),
    )
    assert sent.exit_code == 0, sent.stderr
    read = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", server, "--topic", "java", "--group", "java"),
        *("--from-beginning", "--max-messages", "50", "--timeout-ms", "30000"),
    )
    assert read.stdout.count("line") == 50, read.stderr
    run_tool(topics, "--bootstrap-server", server, "--describe")

    assert BASICS | GROUP | {ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS} <= spoken_since(proxy, start)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its own use of the standard library
def test_what_kafka_python_says_and_hears_is_understood(proxy: Recorder) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    start = len(proxy.conversations)
    server = f"127.0.0.1:{proxy.port}"
    producer = KafkaProducer(bootstrap_servers=server, compression_type="gzip")
    for n in range(50):
        producer.send("kafka-python", b"v%d" % n)
    producer.flush(20)
    producer.close()
    consumer = KafkaConsumer(
        "kafka-python",
        bootstrap_servers=server,
        group_id="kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    assert sum(1 for _, _ in zip(range(50), consumer, strict=False)) == 50
    consumer.close()

    assert spoken_since(proxy, start) >= BASICS | GROUP


def test_what_aiokafka_says_and_hears_is_understood(proxy: Recorder) -> None:
    start = len(proxy.conversations)
    server = f"127.0.0.1:{proxy.port}"

    async def produce_and_consume() -> int:
        producer = AIOKafkaProducer(bootstrap_servers=server, compression_type="snappy")
        await producer.start()
        for n in range(50):
            await producer.send_and_wait("aiokafka", b"v%d" % n)
        await producer.stop()
        settings: dict[str, Any] = {"group_id": "aiokafka", "auto_offset_reset": "earliest"}
        consumer = AIOKafkaConsumer("aiokafka", bootstrap_servers=server, **settings)
        await consumer.start()
        count = 0
        while count < 50:
            count += sum(map(len, (await consumer.getmany(timeout_ms=20_000)).values()))
        await consumer.stop()
        return count

    assert asyncio.run(produce_and_consume()) == 50
    assert spoken_since(proxy, start) >= BASICS | GROUP


def test_what_apaches_controller_says_to_its_broker_is_understood(proxy: Recorder) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{proxy.port}", "log_level": 0})
    admin.create_topics([NewTopic("controlled", 2, 1)])["controlled"].result(20)

    assert {ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR} <= spoken_since(proxy, 0)
