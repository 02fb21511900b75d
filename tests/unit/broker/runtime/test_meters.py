"""Counters, request times, and the page that shows them."""

from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla.broker.clients.request import Request
from ottla.broker.observed.gauges import METRICS, api_name
from ottla.broker.runtime.meters import UNKNOWN_API, IdleMeter, Meters, RequestMeter
from ottla.broker.runtime.state import BrokerState
from ottla.controller.effects import Decision
from ottla.controller.election import Rule
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.model.partition_state import LeaderAndIsr
from ottla.server.metrics import exposition, health
from ottla.wire.apis.api_versions import ApiVersionsRequest
from support.bench.led_broker import ME, SECOND, THIRD, LedBroker, a_batch
from support.bench.node_bench import Bench, a_config


def state(leader: int) -> LeaderAndIsr:
    return LeaderAndIsr(BrokerId(leader), LeaderEpoch(1), (BrokerId(leader),), 1, 1)


def decision(rule: Rule, before: int | None, after: int | None) -> Decision:
    return Decision(
        TopicPartition("t", 0),
        rule,
        None if before is None else state(before),
        None if after is None else state(after),
        (BrokerId(1), BrokerId(2)),
        frozenset({BrokerId(2)}),
    )


def test_only_decisions_that_choose_another_leader_are_elections() -> None:
    meters = Meters()

    meters.decided(
        [
            decision(Rule.NEW_PARTITION, None, 1),
            decision(Rule.OFFLINE, 1, 2),
            decision(Rule.ISR_CHANGE, 2, 2),
            decision(Rule.UNCLEAN, 1, 2),
            decision(Rule.OFFLINE, 1, None),
        ]
    )

    assert meters.elections == {Rule.NEW_PARTITION: 1, Rule.OFFLINE: 1, Rule.UNCLEAN: 1}


def test_a_larger_isr_is_an_expansion_and_a_smaller_one_a_shrinkage() -> None:
    meters = Meters()

    meters.isr_changed(3, 2)
    meters.isr_changed(2, 3)
    meters.isr_changed(3, 1)

    assert (meters.isr_shrinks, meters.isr_expands) == (2, 1)


def test_a_request_is_timed_from_its_arrival_to_its_answer() -> None:
    bench = Bench().start()
    moments = iter([10.0, 10.0042])
    bench.node.connections.meter = meter = RequestMeter(lambda: next(moments))

    bench.ask(ApiVersionsRequest(), 0)

    times = meter.by_api[18]
    assert (times.count, round(times.total_ms, 3)) == (1, 4.2)
    assert times.bytes_in > 0
    assert times.bytes_out > 0


def test_prometheus_reads_the_page_and_finds_every_metric_in_it() -> None:
    bench = Bench().start()
    bench.node.connections.meter = RequestMeter(lambda: 0.0)
    bench.ask(ApiVersionsRequest(), 0)

    families = {family.name: family for family in text_string_to_metric_families(exposition(bench.node))}

    assert families.keys() == {metric.name.removesuffix("_total") for metric in METRICS}
    assert {family.name: family.type for family in families.values()} == {
        metric.name.removesuffix("_total"): metric.kind for metric in METRICS
    }
    counted = families["kafka_network_requestmetrics_requests"].samples
    assert [(sample.labels, sample.value) for sample in counted] == [({"request": "ApiVersions"}, 1)]


@pytest.mark.parametrize(
    ("isr", "adding", "count"), [((ME,), (), 1), ((ME, SECOND), (THIRD,), 0), ((ME,), (THIRD,), 1)]
)
def test_a_replica_that_is_being_added_makes_no_partition_under_replicated(
    isr: tuple[int, ...], adding: tuple[int, ...], count: int
) -> None:
    broker = LedBroker().lead(isr=isr, adding=adding)
    (metric,) = [metric for metric in METRICS if metric.name.endswith("_underreplicatedpartitions")]

    assert [sample.value for sample in metric.read(broker.node)] == [count]


def readings(broker: Bench, name: str) -> dict[tuple[str, ...], float]:
    """A metric's numbers by the values of its labels."""
    (metric,) = [metric for metric in METRICS if metric.name == name]
    return {tuple(value for _, value in sample.labels): sample.value for sample in metric.read(broker.node)}


def test_a_batch_refused_for_want_of_replicas_has_failed_and_one_for_a_follower_has_not() -> None:
    failed = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    lonely = LedBroker(a_config(min_insync_replicas=2)).lead(isr=(ME,))
    lonely.node.connections.meter = RequestMeter(lambda: 0.0)
    following = LedBroker().follow()

    lonely.produce_now(a_batch("a"), acks=-1)
    lonely.produce_now(a_batch("b"), acks=1)
    following.produce_now(a_batch("a"), acks=1)

    assert readings(lonely, failed) == {(): 1}
    assert readings(following, failed) == {(): 0}
    assert readings(lonely, "kafka_server_brokertopicmetrics_totalproducerequests_total") == {(): 2}
    assert readings(lonely, "kafka_cluster_partition_underminisr") == {(): 1}
    (size,) = readings(lonely, "kafka_log_log_size").values()
    assert size == lonely.log.size_bytes > 0


def test_connections_are_counted_by_listener_and_offline_directories_leave_the_sizes() -> None:
    bench = Bench().start()
    bench.connect()
    bench.connect()
    (directory,) = bench.node.log_dirs.live_paths
    before = readings(bench, "kafka_log_log_size")
    bench.node.log_dirs.take_offline(directory, "gone")

    assert readings(bench, "kafka_server_socket_server_metrics_connection_count") == {("PLAINTEXT",): 2}
    assert (before, readings(bench, "kafka_log_log_size")) == ({(directory,): 0}, {})
    assert readings(bench, "kafka_log_logmanager_offlinelogdirectorycount") == {(): 1}


def test_idle_is_what_the_thread_did_not_compute_since_the_last_look() -> None:
    moments, busy = iter([0.0, 10.0, 10.5, 12.0, 14.0]), iter([5.0, 7.5, 7.6, 9.5, 99.0])

    meter = IdleMeter(lambda: next(moments), lambda: next(busy))

    assert [meter.share() for _ in range(4)] == [0.75, 0.75, 0.0, 0.0]


def test_whatever_number_a_client_sends_there_is_one_name_for_the_unknown() -> None:
    assert {api_name(number) for number in (-1, 999, 32_767)} == {"Unknown"}


def test_requests_that_nobody_knows_share_one_series() -> None:
    bench = Bench().start()
    bench.node.connections.meter = meter = RequestMeter(lambda: 0.0)
    for number in (999, 1000, 32_767):
        meter.answered(cast(Request, SimpleNamespace(api_key=number, came_s=0.0, size=7)), 9)

    lines = [line for line in exposition(bench.node).splitlines() if 'request="Unknown"' in line]

    assert list(meter.by_api) == [UNKNOWN_API]
    assert 'kafka_network_requestmetrics_requests_total{request="Unknown"} 3' in lines
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)


def test_a_broker_that_serves_says_so_and_one_that_stops_does_not() -> None:
    bench = Bench().start()

    before, facts = health(bench.node)
    bench.node.state = BrokerState.STOPPING
    after, _ = health(bench.node)

    assert (before, after) == (True, False)
    assert facts["status"] == "serving"
    assert facts["zookeeper_connected"] is True
