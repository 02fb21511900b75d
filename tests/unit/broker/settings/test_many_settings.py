"""DescribeConfigs for a whole cluster: the answer is whole, and others have their turn meanwhile."""

from typing import Any

import pytest

from ottla.broker.clients.request import Request
from ottla.broker.runtime.tasks import BREATH, SLICE_MS, Steps
from ottla.broker.settings.entries import ConfigRows
from ottla.config.definitions import topic_settings
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.headers import decode_response
from support.bench.node_bench import Bench
from unit.broker.settings.test_settings_apis import BROKER, SET, TOPIC, a_bench_with_a_topic, describe, edit


def a_question(topics: int, **flags: bool) -> DescribeConfigsRequest:
    named = [("orders", TOPIC), ("1", BROKER), ("", BROKER), *((f"no{n}", TOPIC) for n in range(topics))]
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for name, kind in named
    ]
    return DescribeConfigsRequest(resources=resources, **flags)


def a_request(bench: Bench) -> Request:
    connection = bench.node.connections.get(bench.connect())
    assert connection is not None
    request = Request(connection, 32, 4, 1, "client", 100)
    connection.accept(request)
    return request


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("topics", [0, 200])
def test_an_answer_encoded_item_by_item_is_an_answer(version: int, topics: int) -> None:
    bench = a_bench_with_a_topic()

    results = bench.ask(a_question(topics), version).results

    assert [(each.resource_name, each.error_code) for each in results[:3]] == [
        ("orders", 0),
        ("1", 0),
        ("", 0),
    ]
    assert [each.error_code for each in results[3:]] == [3] * topics
    assert len(results[0].configs) == len(topic_settings())
    assert len(results[1].configs) > 200


def test_a_large_answer_is_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = a_bench_with_a_topic()
    of_topic = ConfigRows.of_topic

    def slowly(*arguments: Any) -> Any:
        bench.clock.now_ms += SLICE_MS
        return of_topic(*arguments)

    monkeypatch.setattr(ConfigRows, "of_topic", slowly)
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name="orders", configuration_keys=None)
    connection = bench.connect()
    bench.send(connection, DescribeConfigsRequest(resources=[resource] * 5), 4)

    turns = 0
    while not any(each.connection == connection for each in bench.written):
        turns += 1
        assert describe(bench, BROKER, "1", "num.partitions")  # somebody else is served
        bench.node.on_tick()
        bench.settle()

    assert turns == 5
    [answer] = [b"".join(each.parts)[4:] for each in bench.written if each.connection == connection]
    assert len(decode_response(DescribeConfigsResponse, 4, answer)[1].results) == 5


def test_who_asked_for_work_that_fails_in_a_later_slice_is_hung_up_on() -> None:
    bench = a_bench_with_a_topic()

    def work() -> Steps[None]:
        bench.clock.now_ms += SLICE_MS
        yield BREATH
        raise ValueError("this work fails")

    bench.node.tasks.spawn(work(), a_request(bench))
    with pytest.raises(ValueError, match="this work fails"):
        bench.node.on_tick()
    bench.settle()

    assert [each.reason for each in bench.closed] == ["internal error"]


def test_topics_share_what_they_inherit_and_have_their_own() -> None:
    bench = a_bench_with_a_topic()
    rows = ConfigRows(bench.node.configs, bench.node.broker_id, with_synonyms=True)

    first, second = rows.of_topic({}), rows.of_topic({"flush.ms": "5"})

    different = [mine.name for mine, other in zip(first, second, strict=True) if mine is not other]
    assert different == ["flush.ms"]


def test_what_a_broker_is_told_is_seen_in_the_next_answer() -> None:
    bench = a_bench_with_a_topic()
    assert describe(bench, BROKER, "1", "log.retention.ms")["log.retention.ms"].value is None
    assert describe(bench, TOPIC, "orders", "retention.ms")["retention.ms"].value == "604800000"

    edit(bench, BROKER, "", ("log.retention.ms", SET, "7"))

    assert describe(bench, BROKER, "1", "log.retention.ms")["log.retention.ms"].value == "7"
    behind = describe(bench, BROKER, "1", "log.retention.hours")["log.retention.hours"]
    assert [(each.name, each.value) for each in behind.synonyms] == [("log.retention.hours", "168")]
    row = describe(bench, TOPIC, "orders", "retention.ms")["retention.ms"]
    assert (row.value, row.config_source) == ("7", 3)
