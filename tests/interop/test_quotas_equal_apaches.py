"""Client quotas: an Ottla broker stores, tells and enforces them as an Apache broker does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import Any

import pytest
from kazoo.client import KazooClient

from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis import alter_client_quotas as altering
from ottla.wire.apis import describe_client_quotas as describing
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.apis.list_groups import ListGroupsRequest
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.processes.apache_tools import run_apache
from support.processes.broker_process import BrokerProcess, wait_all_usable
from support.processes.commands import run_here
from support.processes.ports import free_port
from support.running.waiting import wait_until
from support.security.broker import KINDS
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

Entity = dict[str, str | None]
BOTH = ("apache", "ottla")


@dataclass(frozen=True, slots=True)
class One:
    """A broker in a cluster of its own."""

    port: int
    connect: str

    def client(self, client_id: str = "wire") -> WireClient:
        return WireClient(f"127.0.0.1:{self.port}", client_id=client_id)

    def ask(self, message: Any, version: int, client_id: str = "wire") -> Any:
        with self.client(client_id) as client:
            return client.ask(message, version)


@pytest.fixture(scope="module")
def brokers(chroots: Chroots) -> Iterator[dict[str, One]]:
    running: list[BrokerProcess] = []
    found: dict[str, One] = {}
    try:
        for number, kind in enumerate(BOTH, 1):
            port, connect = free_port(), chroots.make().connect
            running.append(KINDS[kind](number, connect, port))
            found[kind] = One(port, connect)
        for broker in running:
            broker.launch()
        for broker in running:
            wait_all_usable([broker])
        for one in found.values():
            assert one.ask(new_topic("orders", 1), 5).topics[0].error_code == 0
        yield found
    finally:
        for broker in running:
            broker.stop()


def new_topic(name: str, partitions: int, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)


def change(entity: Entity, **quotas: float | None) -> altering.RequestEntryData:
    """None removes a quota."""
    return altering.RequestEntryData(
        entity=[altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            altering.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )


def alter(
    one: One, *entries: altering.RequestEntryData, validate_only: bool = False
) -> list[tuple[object, int, str]]:
    request = altering.AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer = one.ask(request, 1)
    return sorted(
        (
            sorted((each.entity_type, str(each.entity_name)) for each in row.entity),
            row.error_code,
            row.error_message or "",
        )
        for row in answer.entries
    )


def describe(one: One, *components: tuple[str, int, str | None], strict: bool = False) -> object:
    rows = [
        describing.ComponentData(entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    answer = one.ask(describing.DescribeClientQuotasRequest(components=rows, strict=strict), 1)
    if answer.entries is None:
        return answer.error_code, answer.error_message
    return answer.error_code, sorted(
        (
            sorted((each.entity_type, str(each.entity_name)) for each in row.entity),
            sorted((each.key, each.value) for each in row.values),
        )
        for row in answer.entries
    )


CHANGES: dict[str, altering.RequestEntryData] = {
    "a user": change({"user": "alice"}, producer_byte_rate=1024.0, request_percentage=12.5),
    "a name that znodes cannot have": change({"user": "a b*~/+ü"}, consumer_byte_rate=5.0),
    "all users": change({"user": None}, controller_mutation_rate=0.0001),
    "a client": change({"client-id": "c 1"}, producer_byte_rate=7.0000001),
    "all clients": change({"client-id": None}, request_percentage=1e7),
    "both": change({"user": "alice", "client-id": "c"}, consumer_byte_rate=3.0),
    "both, the other way round": change({"client-id": "d", "user": "bob"}, consumer_byte_rate=3.0),
    "both defaults": change({"user": None, "client-id": None}, consumer_byte_rate=4.0),
    "a user's clients": change({"user": "bob", "client-id": None}, producer_byte_rate=4.0),
    "an address": change({"ip": "10.1.2.3"}, connection_creation_rate=9.0),
    "all addresses": change({"ip": None}, connection_creation_rate=1000.0),
    "one more": change({"user": "alice"}, consumer_byte_rate=2048.0),
    "one removed": change({"user": "alice"}, producer_byte_rate=None),
    "a missing one removed": change({"user": "nobody"}, producer_byte_rate=None),
    "an unknown one removed": change({"user": "nobody"}, nonsense=None),
    "the last one removed": change({"user": "bob", "client-id": "d"}, consumer_byte_rate=None),
    "an unknown key": change({"user": "u"}, speed=1.0),
    "a key of addresses": change({"user": "u"}, connection_creation_rate=1.0),
    "a key of users": change({"ip": "10.0.0.1"}, producer_byte_rate=1.0),
    "half a byte": change({"user": "u"}, producer_byte_rate=1.5),
    "half a connection": change({"ip": "10.0.0.1"}, connection_creation_rate=1.5),
    "below nothing": change({"ip": "10.0.0.1"}, connection_creation_rate=-1.0),
    "too much": change({"user": "u"}, producer_byte_rate=1e19),
    "no name": change({"user": ""}, producer_byte_rate=1.0),
    "no client's name": change({"client-id": ""}, producer_byte_rate=1.0),
    "an address and a user": change({"ip": "10.0.0.1", "user": "u"}, producer_byte_rate=1.0),
    "nowhere": change({"ip": "not.a.host.invalid"}, connection_creation_rate=1.0),
    "an unknown kind": change({"group": "g"}, producer_byte_rate=1.0),
    "nobody": change({}, producer_byte_rate=1.0),
    "nothing": change({"user": "empty"}),
    "infinite": change({"user": "u2"}, request_percentage=float("inf")),
}
"""In this order; some build upon those before."""
DESCRIPTIONS: dict[str, tuple[list[tuple[str, int, str | None]], bool]] = {
    "all": ([], False),
    "all, strictly": ([], True),
    "a user": ([("user", 0, "alice")], False),
    "a user, strictly": ([("user", 0, "alice")], True),
    "any user": ([("user", 2, None)], False),
    "any user, strictly": ([("user", 2, None)], True),
    "the default user": ([("user", 1, None)], False),
    "a user's clients": ([("user", 0, "alice"), ("client-id", 2, None)], True),
    "both defaults": ([("user", 1, None), ("client-id", 1, None)], False),
    "any client": ([("client-id", 2, None)], False),
    "any address": ([("ip", 2, None)], False),
    "one address": ([("ip", 0, "10.1.2.3")], True),
    "the default address": ([("ip", 1, None)], False),
    "an address and a user": ([("ip", 2, None), ("user", 2, None)], False),
    "twice": ([("user", 2, None), ("user", 2, None)], False),
    "clients twice": ([("client-id", 2, None), ("client-id", 2, None)], False),
    "an unknown kind": ([("group", 2, None)], False),
    "no kind": ([("", 2, None)], False),
    "an unknown match": ([("user", 7, None)], False),
    "nobody": ([("user", 0, "nobody")], True),
}


def test_quotas_are_changed_described_and_stored_as_apache_does_it(brokers: dict[str, One]) -> None:
    said: dict[str, dict[str, object]] = {kind: {} for kind in BOTH}
    stored = {}
    for kind, one in brokers.items():
        before = len(quotas_in(one.connect)[1])
        trial = alter(one, CHANGES["a user"], CHANGES["an unknown key"], validate_only=True)
        said[kind]["a trial"] = (trial, describe(one))
        for name, entry in CHANGES.items():
            said[kind][name] = alter(one, entry)
        for name, (components, strict) in DESCRIPTIONS.items():
            said[kind][f"described: {name}"] = describe(one, *components, strict=strict)
        nodes, notes = quotas_in(one.connect)
        stored[kind] = nodes, notes[before:]
        for entry in CHANGES.values():
            alter(
                one,
                altering.RequestEntryData(
                    entry.entity, [altering.OpData(op.key, remove=True) for op in entry.ops]
                ),
            )
        said[kind]["all removed"] = (describe(one), quotas_in(one.connect)[0])

    assert said["ottla"] == said["apache"]
    assert stored["ottla"] == stored["apache"]


def quotas_in(connect: str) -> tuple[dict[str, bytes], list[str]]:
    """All znodes of quotas, and of whom notes tell."""
    client = KazooClient(hosts=connect)
    client.start(timeout=15)
    try:
        nodes: dict[str, bytes] = {}
        waiting = ["/config/users", "/config/clients", "/config/ips"]
        while waiting:
            path = waiting.pop()
            nodes[path] = client.get(path)[0] or b""
            waiting += [
                f"{path}/{name}" for name in (client.get_children(path) if client.exists(path) else ())
            ]
        notes = [
            client.get(f"/config/changes/{name}")[0]
            for name in sorted(client.get_children("/config/changes"))
        ]
        entities = [json.loads(note)["entity_path"] for note in notes]
        return nodes, [each for each in entities if not each.startswith("topics/")]
    finally:
        client.stop()
        client.close()


# ---- enforced


_PROBES = count(1)


def holds(one: One, entity: Entity, **quotas: float | None) -> None:
    """Set quotas, and wait until the broker obeys them: it hears of changes in their order, and the last one
    is of a client that is throttled from then on."""
    probe = f"probe-{next(_PROBES)}"
    assert [row[1] for row in alter(one, change(entity, **quotas))] == [0]
    alter(one, change({"client-id": probe}, producer_byte_rate=1.0))

    def is_throttled() -> bool:
        with one.client(probe) as client:
            return bool(produce(client, 100).throttle_time_ms)

    wait_until(is_throttled, f"the broker has heard of {probe}", 30)
    alter(one, change({"client-id": probe}, producer_byte_rate=None))


def produce(client: WireClient, size: int, acks: int = 1) -> Any:
    batch = build_batch([Record(None, b"x" * size, timestamp=1_700_000_000_000)])
    data = [TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=batch)])]
    return client.ask(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data), 9)


def fetch(client: WireClient, offset: int = 0) -> Any:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic="orders", partitions=[asked])]
    return client.ask(FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000_000, topics=topics), 11)


@pytest.mark.parametrize("kind", BOTH)
def test_producers_wait_as_kafka_reckons_and_the_connection_is_not_read_meanwhile(
    brokers: dict[str, One], kind: str
) -> None:
    one = brokers[kind]
    holds(one, {"client-id": "producer"}, producer_byte_rate=10_000.0)
    waits = []
    for _ in range(4):
        with one.client("producer") as client:
            waits.append(produce(client, 28_000).throttle_time_ms)

    # What is measured over is ten windows and the part of a second that has begun.
    assert waits[:3] == [0, 0, 0]
    assert 11_200 - 11_000 < waits[3] < 11_300 - 10_000
    with one.client("producer") as client:
        began = monotonic()
        wait_ms = produce(client, 3_000).throttle_time_ms
        assert 11_500 - 11_000 < wait_ms < 11_700 - 10_000
        assert client.ask(ListGroupsRequest(), 4).throttle_time_ms == 0
        assert (monotonic() - began) * 1_000 >= wait_ms - 1
    holds(one, {"client-id": "producer"}, producer_byte_rate=None)


def test_consumers_over_their_quota_get_nothing_and_miss_nothing(brokers: dict[str, One]) -> None:
    outcome = {}
    for kind, one in brokers.items():
        with one.client("other") as client:
            for _ in range(3):
                produce(client, 9_000)
        holds(one, {"client-id": "consumer"}, consumer_byte_rate=1_000.0)

        def throttled(one: One = one) -> Any:
            with one.client("consumer") as client:
                answer = fetch(client)
                return answer if answer.throttle_time_ms else None

        answer = wait_until(throttled, f"{kind} throttles", 30)
        outcome[kind] = (answer.error_code, answer.responses)
        holds(one, {"client-id": "consumer"}, consumer_byte_rate=None)
    assert outcome["ottla"] == outcome["apache"] == (0, [])


def test_the_time_of_requests_is_limited_to_a_window(brokers: dict[str, One]) -> None:
    for kind, one in brokers.items():
        holds(one, {"client-id": "busy"}, request_percentage=0.001)

        def wait_ms(one: One = one) -> int:
            with one.client("busy") as client:
                return int(client.ask(ListGroupsRequest(), 4).throttle_time_ms)

        wait_until(lambda wait_ms=wait_ms: wait_ms() == 1_000, f"{kind} throttles for a second", 30)
        holds(one, {"client-id": "busy"}, request_percentage=None)


def test_topics_over_the_quota_of_mutations_are_refused_as_by_apache(brokers: dict[str, One]) -> None:
    said: dict[str, list[object]] = {kind: [] for kind in BOTH}

    def tell(kind: str, answer: Any, rows: list[Any]) -> None:
        outcome = [(row.name, row.error_code, getattr(row, "error_message", None)) for row in rows]
        # What is owed shrinks by the second, and ten seconds are one partition here.
        said[kind].append((outcome, round(answer.throttle_time_ms / 10_000)))

    for kind, one in brokers.items():
        holds(one, {"client-id": "maker"}, controller_mutation_rate=0.1)
        for request, version in (
            (new_topic("m1", 15), 7),
            (new_topic("m2", 1), 7),
            (new_topic("m2", 1, validate_only=True), 7),
            (new_topic("m1", 1), 7),
            (new_topic("m3", 1), 5),
        ):
            answer = one.ask(request, version, "maker")
            tell(kind, answer, answer.topics)
        more = CreatePartitionsTopic(name="m1", count=16, assignments=None)
        answer = one.ask(CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3, "maker")
        tell(kind, answer, answer.results)
        doomed = DeleteTopicsRequest(topics=[DeleteTopicState(name="m3")], timeout_ms=30_000)
        answer = one.ask(doomed, 6, "maker")
        tell(kind, answer, answer.responses)
        holds(one, {"client-id": "maker"}, controller_mutation_rate=None)

    assert said["ottla"] == said["apache"]


def test_an_address_that_connects_too_often_is_hung_up_on(brokers: dict[str, One]) -> None:
    passed = {}
    for kind, one in brokers.items():
        holds(one, {"ip": "127.0.0.3"}, connection_creation_rate=1.0)
        clients = [from_address("127.0.0.3", one.port) for _ in range(20)]
        for client in clients:
            client.send(ListGroupsRequest(), 4)
        passed[kind] = [is_served(client) for client in clients]
        for client in clients:
            client.close()
        holds(one, {"ip": "127.0.0.3"}, connection_creation_rate=None)
    assert passed["ottla"] == passed["apache"] == [True] * 10 + [False] * 10


def from_address(host: str, port: int) -> WireClient:
    return WireClient(f"127.0.0.1:{port}", source=host)


def is_served(client: WireClient) -> bool:
    """Whether the broker answers; if it does not, it hangs up."""
    return client.read_frame() is not None


# ---- the tool

PAIR = ("--entity-type", "users", "--entity-name", "tess", "--entity-type", "clients", "--entity-name", "c")
TOOL_LINES: tuple[tuple[str, ...], ...] = (
    ("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=0.0001", "--user", "tess"),
    ("--alter", "--add-config", "consumer_byte_rate=9", *PAIR),
    ("--alter", "--add-config", "consumer_byte_rate=8", "--user-defaults", "--client-defaults"),
    ("--alter", "--add-config", "controller_mutation_rate=7", "--entity-type", "clients", "--entity-default"),
    ("--alter", "--add-config", "connection_creation_rate=90000", "--ip-defaults"),
    ("--alter", "--add-config", "connection_creation_rate=90000", "--ip", "10.9.9.9"),
    ("--describe", "--user", "tess"),
    ("--describe", *PAIR),
    ("--describe", "--entity-type", "users", "--entity-type", "clients"),
    ("--describe", "--user-defaults", "--client-defaults"),
    ("--describe", "--entity-type", "clients"),
    ("--describe", "--entity-type", "ips"),
    ("--alter", "--delete-config", "producer_byte_rate", "--user", "tess"),
    ("--alter", "--delete-config", "producer_byte_rate", "--user", "tess"),
    ("--alter", "--add-config", "producer_byte_rate=1.5", "--user", "tess"),
    ("--alter", "--delete-config", "request_percentage", "--user", "tess"),
    ("--alter", "--delete-config", "consumer_byte_rate", *PAIR),
    ("--alter", "--delete-config", "consumer_byte_rate", "--user-defaults", "--client-defaults"),
    ("--alter", "--delete-config", "controller_mutation_rate", "--client-defaults"),
    ("--alter", "--delete-config", "connection_creation_rate", "--ip-defaults"),
    ("--alter", "--delete-config", "connection_creation_rate", "--ip", "10.9.9.9"),
    ("--describe", "--entity-type", "users", "--entity-type", "clients"),
)
"""In this order; the last ones leave nothing."""


def test_the_tool_says_what_apaches_says(brokers: dict[str, One]) -> None:
    theirs, ours = [], []
    for words in TOOL_LINES:
        run = run_apache("configs", "--bootstrap-server", f"127.0.0.1:{brokers['apache'].port}", *words)
        theirs.append((words, run.exit_code, [] if run.exit_code else lines(run.stdout.splitlines())))
        ran = run_here("configs", "--bootstrap-server", f"127.0.0.1:{brokers['ottla'].port}", *words)
        ours.append((words, ran.exit_code, [] if ran.exit_code else lines(ran.lines)))

    assert ours == theirs


def lines(said: list[str]) -> list[tuple[str, list[str]]]:
    """In an order of their own, as the values are: Kafka's is that of a hash table."""
    cut = (line.partition(" are ") for line in said)
    return sorted((begin, sorted(values.split(", "))) for begin, _, values in cut)
