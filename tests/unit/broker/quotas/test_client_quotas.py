"""A whole node with quotas: who is throttled, for how long, and who is not."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla.broker.outputs import Output, PauseReading
from ottla.model.errors import ErrorCode
from ottla.server.metrics import exposition
from ottla.wire.apis import alter_client_quotas as altering
from ottla.wire.apis import describe_client_quotas as describing
from ottla.wire.apis import message_classes
from ottla.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.list_groups import ListGroupsRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.apis.produce import ProduceResponse
from ottla.wire.headers import decode_response
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import Children, Create, Data, GetChildren, GetData, Result
from support.bench.controller_bench import serving
from support.bench.led_broker import LedBroker, a_batch, headers
from support.bench.node_bench import Bench

Entity = dict[str, str | None]
BENCH: Entity = {"client-id": "bench"}


class QuotaBench(LedBroker):
    """A leader; its clients' id is ``bench``."""

    def __init__(self) -> None:
        super().__init__()
        self.paused: list[int] = []
        self.zk(Create("/controller", b"{}"))
        self.lead(isr=(1,))

    def _perform(self, output: Output) -> None:
        if isinstance(output, PauseReading):
            self.paused.append(output.connection)
        super()._perform(output)

    def alter(self, entity: Entity, **quotas: float | None) -> Any:
        return alter(self, entity, **quotas)

    def produce_on(self, connection: int, size: int) -> Any:
        self.produce(a_batch("x" * size), connection=connection)
        return self.take_answers(connection, ProduceResponse, 11)[0]

    def talk(self, connection: int, message: Any, version: int) -> Any:
        """The answer on that connection, or None if there is none yet."""
        before = len(self.written)
        self.send(connection, message, version)
        return self.answer_since(before, message, version)

    def answer_since(self, before: int, message: Any, version: int) -> Any:
        frames = self.written[before:]
        if not frames:
            return None
        response = message_classes(ApiKey(message.spec.api_key))[1]
        return decode_response(response, version, b"".join(frames[0].parts)[4:])[1]


def alter(bench: Bench, entity: Entity, is_trial: bool = False, **quotas: float | None) -> Any:
    """The row of the answer; None removes a quota."""
    ops = [
        altering.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()
    ]
    rows = [altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    entry = altering.RequestEntryData(entity=rows, ops=ops)
    return bench.ask(altering.AlterClientQuotasRequest(entries=[entry], validate_only=is_trial), 1).entries[0]


def describe(bench: Bench, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    rows = [
        describing.ComponentData(entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    return bench.ask(describing.DescribeClientQuotasRequest(components=rows, strict=strict), 1)


def described(answer: Any) -> dict[str, dict[str, float]]:
    return {
        ",".join(f"{each.entity_type}={each.entity_name}" for each in row.entity): {
            value.key: value.value for value in row.values
        }
        for row in answer.entries
    }


def data(result: Result) -> bytes | None:
    return result.data if isinstance(result, Data) else None


# ---- what is stored


def test_quotas_stand_in_zookeeper_as_kafka_writes_them() -> None:
    bench = Bench().start()

    alter(bench, {"user": "a b"}, producer_byte_rate=1024.0, request_percentage=0.0001)
    alter(bench, {"user": None, "client-id": "c"}, consumer_byte_rate=7.0)
    alter(bench, {"ip": "10.0.0.1"}, connection_creation_rate=3.0)

    assert data(bench.zk(GetData("/config/users/a%20b"))) == (
        b'{"version":1,"config":{"producer_byte_rate":"1024","request_percentage":"1.0E-4"}}'
    )
    assert data(bench.zk(GetData("/config/users/<default>/clients/c"))) == (
        b'{"version":1,"config":{"consumer_byte_rate":"7"}}'
    )
    assert data(bench.zk(GetData("/config/ips/10.0.0.1"))) == (
        b'{"version":1,"config":{"connection_creation_rate":"3"}}'
    )
    notes = bench.zk(GetChildren("/config/changes"))
    assert isinstance(notes, Children)
    found = [data(bench.zk(GetData(f"/config/changes/{name}"))) for name in sorted(notes.names)]
    assert b'{"version":2,"entity_path":"users/<default>/clients/c"}' in found


def test_a_user_of_whom_nothing_is_left_is_not_kept() -> None:
    bench = Bench().start()
    alter(bench, {"user": "u", "client-id": "c"}, consumer_byte_rate=7.0)
    alter(bench, {"user": "u", "client-id": "d"}, consumer_byte_rate=7.0)

    alter(bench, {"user": "u", "client-id": "c"}, consumer_byte_rate=None)
    assert bench.zk(GetChildren("/config/users/u/clients")) == Children(names=("d",), stat=ANY)
    alter(bench, {"user": "u", "client-id": "d"}, consumer_byte_rate=None)
    assert bench.zk(GetChildren("/config/users")) == Children(names=(), stat=ANY)


class _Any:
    def __eq__(self, other: object) -> bool:
        return True


ANY: Any = _Any()


def test_the_place_of_clients_stays_when_the_last_is_gone() -> None:
    bench = Bench().start()
    alter(bench, {"client-id": "c"}, consumer_byte_rate=7.0)
    alter(bench, {"client-id": "c"}, consumer_byte_rate=None)

    assert bench.zk(GetChildren("/config/clients")) == Children(names=(), stat=ANY)


def test_only_what_is_asked_for_is_described() -> None:
    bench = Bench().start()
    alter(bench, {"user": "u"}, producer_byte_rate=1.0)
    alter(bench, {"user": "u", "client-id": None}, producer_byte_rate=2.0)
    alter(bench, {"client-id": "c"}, producer_byte_rate=3.0)
    alter(bench, {"ip": None}, connection_creation_rate=4.0)

    assert set(described(describe(bench))) == {"user=u", "user=u,client-id=None", "client-id=c", "ip=None"}
    assert set(described(describe(bench, ("user", 0, "u")))) == {"user=u", "user=u,client-id=None"}
    assert set(described(describe(bench, ("user", 0, "u"), strict=True))) == {"user=u"}
    assert set(described(describe(bench, ("client-id", 1, None)))) == {"user=u,client-id=None"}
    assert set(described(describe(bench, ("client-id", 2, None), strict=True))) == {"client-id=c"}
    assert described(describe(bench, ("ip", 2, None))) == {"ip=None": {"connection_creation_rate": 4.0}}


@pytest.mark.parametrize(
    ("entity", "quotas", "why"),
    [
        ({"user": "u"}, {"speed": 1.0}, "Invalid configuration key speed"),
        ({"user": "u"}, {"producer_byte_rate": 1.5}, "Configuration producer_byte_rate must be a LONG value"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        ({"ip": "nowhere"}, {"connection_creation_rate": 1.0}, "nowhere is not a valid IP"),
        ({"ip": "10.0.0.1", "user": "u"}, {}, "Invalid quota entity combination"),
        ({"group": "g"}, {}, "Unhandled client quota entity type: group"),
    ],
)
def test_what_makes_no_sense_is_refused_with_kafkas_words(
    entity: Entity, quotas: dict[str, Any], why: str
) -> None:
    bench = Bench().start()
    row = alter(bench, entity, **quotas)

    assert row.error_code == ErrorCode.INVALID_REQUEST
    assert row.error_message.startswith(why)
    assert described(describe(bench)) == {}


def test_validation_alone_stores_nothing() -> None:
    bench = Bench().start()

    assert alter(bench, {"user": "u"}, True, producer_byte_rate=1.0).error_code == 0
    assert described(describe(bench)) == {}


# ---- what is enforced


def test_a_producer_over_its_quota_is_told_to_wait_and_its_next_request_does() -> None:
    bench = QuotaBench()
    bench.alter(BENCH, producer_byte_rate=1_000)
    connection = bench.connect()

    answer = bench.produce_on(connection, 14_000)
    assert 4_000 <= answer.throttle_time_ms < 4_300, "14,000 bytes and a header are 4 s more than 10 s allow"
    assert bench.talk(connection, ListGroupsRequest(), 4) is None
    assert bench.paused == [connection]
    before = len(bench.written)
    bench.advance(answer.throttle_time_ms - 1)
    assert len(bench.written) == before
    bench.advance(1)
    assert bench.answer_since(before, ListGroupsRequest(), 4).throttle_time_ms == 0


def test_another_connection_is_not_muted_and_another_client_not_throttled() -> None:
    bench = QuotaBench()
    bench.alter({"client-id": "somebody"}, producer_byte_rate=1)
    assert bench.produce_on(bench.connect(), 9_000).throttle_time_ms == 0
    bench.alter(BENCH, producer_byte_rate=1_000)
    assert bench.produce_on(bench.connect(), 20_000).throttle_time_ms > 0

    assert bench.talk(bench.connect(), ListGroupsRequest(), 4) is not None


def test_a_quota_that_is_lifted_throttles_nobody_any_more() -> None:
    bench = QuotaBench()
    bench.alter(BENCH, producer_byte_rate=1)
    bench.alter(BENCH, producer_byte_rate=None)

    assert bench.produce_on(bench.connect(), 9_000).throttle_time_ms == 0


def test_a_quota_holds_for_connections_that_were_there_before_it() -> None:
    bench = QuotaBench()
    connection = bench.connect()
    assert bench.produce_on(connection, 9_000).throttle_time_ms == 0
    bench.alter({"user": "ANONYMOUS"}, producer_byte_rate=100)

    assert bench.produce_on(connection, 9_000).throttle_time_ms > 0


def test_a_consumer_over_its_quota_gets_nothing_and_later_everything() -> None:
    bench = QuotaBench()
    bench.produce_now(a_batch("x" * 9_000))
    bench.alter(BENCH, consumer_byte_rate=1_000)
    assert len(headers(bench.fetch_now(0))) == 1

    connection = bench.fetch(0, session=(0, 0))
    throttled = bench.fetched(connection)
    assert throttled is not None
    assert throttled.throttle_time_ms > 0
    assert throttled.responses == []
    bench.advance(11_000)
    assert len(headers(bench.fetch_now(0))) == 1


def test_the_time_of_requests_is_capped_at_a_window() -> None:
    bench = QuotaBench()
    bench.alter(BENCH, request_percentage=0.001)
    now = iter(range(1, 1_000))
    bench.node.client_quotas.now_s = lambda: float(next(now))

    assert bench.talk(bench.connect(), ListGroupsRequest(), 4).throttle_time_ms == 1_000
    assert bench.talk(bench.connect(), MetadataRequest(topics=None), 12).throttle_time_ms == 1_000


def test_an_address_that_connects_too_often_is_hung_up_on_late() -> None:
    bench = Bench().start()
    alter(bench, {"ip": "10.0.0.9"}, connection_creation_rate=1.0)
    first = [bench.connect(host="10.0.0.9") for _ in range(10)]
    one_more = bench.connect(host="10.0.0.9")
    bench.settle()

    bench.send(one_more, ListGroupsRequest(), 4)
    bench.advance(99)
    assert bench.closed == []
    bench.advance(901)
    assert [close.connection for close in bench.closed] == [one_more]
    before = len(bench.written)
    bench.send(first[-1], ListGroupsRequest(), 4)
    assert len(bench.written) > before
    bench.connect(host="10.0.0.8")


def test_a_throttled_client_is_named_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    bench = QuotaBench()
    bench.alter(BENCH, producer_byte_rate=1_000)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            bench.produce_on(bench.connect(), 20_000)
    lines = [line for line in caplog.messages if "throttled" in line]
    assert lines == [line for line in lines if "client='bench' quota=producer_byte_rate limit=1000" in line]
    assert len(lines) == 1


def test_what_clients_with_quotas_use_is_shown_whatever_they_call_themselves() -> None:
    bench = Bench().start()
    alter(bench, {"user": "ANONYMOUS", "client-id": None}, producer_byte_rate=1_000, request_percentage=50)
    usage = bench.node.client_quotas.produce.of("ANONYMOUS", 'a"\\\nb', bench.clock.now_ms)
    assert usage is not None
    usage.meter.record(20_000, bench.clock.now_ms)
    usage.throttle_ms = 10_000
    page = exposition(bench.node)

    odd = '{user="ANONYMOUS",client_id="a\\"\\\\\\nb"}'
    assert f"kafka_server_produce_byte_rate{odd} 2000\n" in page
    assert f"kafka_server_produce_throttle_time{odd} 10000\n" in page
    assert "kafka_server_fetch_byte_rate{" not in page


# ---- changes of topics


def new_topics(count: int, name: str = "t", validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], validate_only=validate_only)


def test_topics_over_the_quota_of_mutations_are_refused_to_clients_that_know_of_it() -> None:
    bench = serving()
    alter(bench, BENCH, controller_mutation_rate=1.0)

    assert bench.ask(new_topics(15), 7).throttle_time_ms == 0, "eleven are there, and it may fall below zero"
    refused = bench.ask(new_topics(1, "u"), 7)
    assert (refused.topics[0].error_code, refused.topics[0].error_message) == (89, None)
    assert refused.throttle_time_ms == 4_000
    assert bench.ask(new_topics(1, "u", validate_only=True), 7).topics[0].error_code == 0
    older = bench.ask(new_topics(1, "u"), 5)
    assert (older.topics[0].error_code, older.throttle_time_ms) == (0, 5_000)


def test_new_partitions_and_deletions_count_as_well() -> None:
    bench = serving()
    bench.ask(new_topics(2), 7)
    alter(bench, BENCH, controller_mutation_rate=1.0)
    grown = CreatePartitionsTopic(name="t", count=15, assignments=None)
    doomed = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=0)

    assert bench.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=9), 3).results[0].error_code == 0
    assert bench.ask(doomed, 6).responses[0].error_code == 89
    grown.count = 16
    assert bench.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=9), 3).results[0].error_code == 89
    bench.advance(2_000)
    assert bench.ask(doomed, 6).responses[0].error_code != 89
