"""The short way of a plain Produce gives the answers, and writes the log, of the long one."""

from random import Random
from typing import Any

import pytest

from ottla.broker.apis.data.plain_produce import LOG_STARTS_SINCE
from ottla.broker.clients.connections import PLAIN_MAX
from ottla.broker.outputs import Close, Output, Write
from ottla.model.ids import LEADER_DURING_DELETE
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.headers import frame_request
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker, a_batch

VERSIONS = range(3, 12)


def two_brokers(**settings: Any) -> tuple[LedBroker, LedBroker]:
    """Alike, but that the second knows the long way alone."""
    short, long = LedBroker().lead(**settings), LedBroker().lead(**settings)
    long.node.serves_plainly = False
    return short, long


def a_frame(version: int = 9, number: int = 1, client: str | None = "one", **fields: Any) -> bytes:
    data = PartitionProduceData(fields.get("index", 0), fields.get("records", bytes(a_batch("a", "b"))))
    request = ProduceRequest(
        transactional_id=fields.get("transactional_id"),
        acks=fields.get("acks", 1),
        timeout_ms=fields.get("timeout_ms", 1_000),
        topic_data=[TopicProduceData(fields.get("topic", TOPIC), [data])],
    )
    return b"".join(frame_request(request, version, number, client))[4:]


def sent(broker: LedBroker, connection: int, *frames: bytes) -> list[Output]:
    """What the node asks for when these come in one turn."""
    for frame in frames:
        broker.node.on_request(connection, memoryview(bytearray(frame)))
    return told(broker.node.take_outputs())


def told(outputs: list[Output]) -> list[Any]:
    """What clients hear, in order."""
    return [
        (type(each), each.connection, b"".join(each.parts) if isinstance(each, Write) else "")
        for each in outputs
        if isinstance(each, Write | Close)
    ]


def content(broker: LedBroker) -> bytes:
    return bytes(broker.log.read(0, 10_000_000, 10**9).read())


def shapes(broker: LedBroker, connection: int) -> int:
    found = broker.node.connections.get(connection)
    assert found is not None, "the client is there"
    return len(found.plain)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_plain_requests_of_every_version_are_answered_as_in_the_long_way(version: int, acks: int) -> None:
    short, long = two_brokers(isr=(ME,))
    frames = [a_frame(version, number, acks=acks) for number in range(4)]

    heard = [[sent(each, each.connect(), *frames) for each in (short, long)]]
    heard += [[sent(each, connection, *frames) for each in (short, long)] for connection in (3, 3)]

    assert all(one == other for one, other in heard)
    assert content(short) == content(long)
    assert short.log.end_offset == 24
    assert shapes(short, 3) == (version >= LOG_STARTS_SINCE)
    assert shapes(long, 3) == 0


def test_acks_all_waits_for_the_followers_and_for_its_time_as_in_the_long_way() -> None:
    short, long = two_brokers()
    for broker in (short, long):
        connection = broker.connect()
        first = [sent(broker, connection, a_frame(number=number, acks=-1)) for number in range(3)]
        assert first == [[], [], []], "nothing is committed yet"
    for replica in (2, 3):
        for broker in (short, long):
            broker.fetch(4, replica=replica)
    assert short.written
    assert [told([each]) for each in short.written] == [told([each]) for each in long.written]
    for broker in (short, long):
        broker.written.clear()
        broker.advance(2_000)
    assert short.written
    assert [told([each]) for each in short.written] == [told([each]) for each in long.written]


def test_one_that_waits_hears_when_its_leader_is_deposed() -> None:
    short, long = two_brokers()
    for broker in (short, long):
        connection = broker.connect()
        sent(broker, connection, a_frame(number=1, acks=-1), a_frame(number=2, acks=-1))
        broker.assigned_code(SECOND)
        broker.settle()
        sent(broker, connection, a_frame(number=3, acks=-1))
    assert [told([each]) for each in short.written] == [told([each]) for each in long.written]


def test_a_client_that_has_gone_is_not_answered() -> None:
    broker = LedBroker().lead()
    connection = broker.connect()
    sent(broker, connection, a_frame(acks=-1), a_frame(acks=-1))
    broker.node.on_client_lost(connection)
    broker.fetch(4, replica=2)
    broker.fetch(4, replica=3)
    broker.advance(2_000)
    assert connection not in {each.connection for each in broker.written}


def test_requests_behind_one_that_waits_keep_their_place() -> None:
    short, long = two_brokers()
    frames = [a_frame(number=number, acks=acks) for number, acks in enumerate((1, -1, 1, -1, 1, 1))]
    for broker in (short, long):
        connection = broker.connect()
        sent(broker, connection, *frames, *frames)
        for replica in (2, 3):
            broker.fetch(100, replica=replica)
            broker.fetch(broker.log.end_offset, replica=replica)
    assert short.written
    assert [told([each]) for each in short.written] == [told([each]) for each in long.written]


def test_a_request_behind_a_fetch_that_waits_is_held_back() -> None:
    short, long = two_brokers(isr=(ME,))
    fetch = b"".join(frame_request(short.fetch_request(4, max_wait_ms=10_000), 12, 7, None))[4:]
    heard = []
    for broker in (short, long):
        connection = broker.connect()
        first = sent(broker, connection, a_frame(), a_frame())
        heard.append((first, sent(broker, connection, fetch, a_frame())))
        assert broker.log.end_offset == 4, "the third is not looked at before the fetch is answered"
    assert heard[0] == heard[1]


def test_a_topic_that_is_being_deleted_is_unknown_at_once() -> None:
    short, long = two_brokers(isr=(ME,))
    heard = []
    for broker in (short, long):
        connection = broker.connect()
        sent(broker, connection, a_frame())
        broker.tell_metadata(p0=LEADER_DURING_DELETE)
        heard.append(sent(broker, connection, a_frame()))
        assert broker.log.end_offset == 2
    assert heard[0] == heard[1]


def test_whoever_produces_to_many_partitions_is_not_remembered_without_end() -> None:
    broker = LedBroker().lead(isr=(ME,))
    connection = broker.connect()
    for timeout_ms in range(PLAIN_MAX + 10):
        sent(broker, connection, a_frame(timeout_ms=timeout_ms))
    assert shapes(broker, connection) == PLAIN_MAX


def changed(random: Random) -> bytes:
    """A Produce, as a rule a plain one; often with something else about it, sometimes with a wrong byte."""
    settings: dict[str, Any] = {}
    if random.random() < 0.3:
        settings = {"producer_id": 7, "producer_epoch": 0, "base_sequence": random.randrange(6)}
    if random.random() < 0.1:
        settings["is_transactional"] = True
    records = a_batch(*"abcd"[: random.choice((1, 1, 2, 4))], **settings)
    choices: dict[str, tuple[Any, ...]] = {
        "acks": (-1, 0, 5),
        "index": (1,),
        "topic": ("other", "__consumer_offsets"),
        "transactional_id": ("t",),
        "records": (None, b"", bytes(records[:40]), bytes(records) * 2),
    }
    fields: dict[str, Any] = {"records": bytes(records)}
    for name, others in choices.items():
        if random.random() < 0.06:
            fields[name] = random.choice(others)
    frame = bytearray(a_frame(random.choice((5, 8, 9, 9, 11)), random.randrange(1000), **fields))
    if random.random() < 0.2:
        frame[random.randrange(len(frame))] = random.randrange(256)
    if random.random() < 0.05:
        del frame[random.randrange(len(frame)) :]
    if random.random() < 0.05:
        frame += b"\0" * random.randrange(1, 5)
    return bytes(frame)


@pytest.mark.parametrize("seed", range(10))
def test_whatever_comes_is_answered_as_in_the_long_way(seed: int) -> None:
    random = Random(seed)
    short, long = two_brokers(isr=(ME,))
    served = 0
    connections = [each.connect() for each in (short, long)]
    for _ in range(60):
        frames = [changed(random) for _ in range(random.choice((1, 3)))]
        heard = [
            sent(each, connection, *frames)
            for each, connection in zip((short, long), connections, strict=True)
        ]
        assert heard[0] == heard[1], f"seed {seed}: {[frame.hex() for frame in frames]}"
        if any(kind is Close for kind, _, _ in heard[0]) or random.random() < 0.05:
            connections = [each.connect() for each in (short, long)]
        served += shapes(short, connections[0])
    assert content(short) == content(long)
    assert served, "some were plain"
