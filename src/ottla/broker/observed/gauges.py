"""Every metric of a broker: Kafka's names as its exporters write them, Kafka's meaning, and how it is read.

Nothing here is labelled by topic or partition, so that the number of series stays small however large the
cluster is: the one label is the API, the rule of an election, or the cause of a fence. Only clients with
quotas have series of their own.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ottla.broker.observed import quota_gauges
from ottla.broker.observed.dashboard import DASHBOARD_METRICS
from ottla.broker.observed.metric import Metric, Observed, Sample, counter, gauge, is_at_min_isr, leaders
from ottla.broker.runtime.meters import BUCKETS_MS, ApiTimes
from ottla.controller.context import ControllerContext, Partition
from ottla.controller.election import Rule
from ottla.wire.keys import ApiKey


def _of_clients(name: str, help: str, read: Callable[[Observed], Iterator[quota_gauges.Row]]) -> Metric:
    def samples(broker: Observed) -> Iterator[Sample]:
        for value, user, client in read(broker):
            yield Sample(value, (("user", user), ("client_id", client)))

    return Metric(name, "gauge", help, samples)


# ---- the replicas here


def _reassigning(broker: Observed) -> int:
    return sum(
        1
        for partition in broker.partitions.all()
        if partition.leader is not None and (partition.assignment.adding or partition.assignment.removing)
    )


# ---- the controller's view: zero on every broker that is not it, as with Kafka


def _of_controller(count: Callable[[ControllerContext], int]) -> Callable[[Observed], int]:
    def value(broker: Observed) -> int:
        term = broker.controller.term
        return 0 if term is None else count(term.core.context)

    return value


def _kept(context: ControllerContext) -> Iterator[Partition]:
    """Partitions of topics that are not being deleted."""
    return (p for p in context.partitions.values() if p.key.topic not in context.queued_for_deletion)


def _offline(context: ControllerContext) -> int:
    return sum(p.state is None or not context.is_online(p, p.state.leader) for p in _kept(context))


def _not_preferred(context: ControllerContext) -> int:
    return sum(p.state is None or p.state.leader != p.assignment.replicas[0] for p in _kept(context))


def _elections(broker: Observed) -> Iterator[Sample]:
    for rule, count in sorted(broker.meters.elections.items(), key=lambda item: item[0].value):
        yield Sample(count, (("rule", rule.value),))


# ---- transactions coordinated here


def _oldest_prepared_s(broker: Observed) -> float:
    began = [
        stored.start_ms
        for shard in broker.transaction_coordinator.serving()
        for stored in shard.prepared.values()
    ]
    return max(0, broker.clock.wall_ms() - min(began)) / 1000 if began else 0


def _fenced(broker: Observed) -> Iterator[Sample]:
    for cause, count in sorted(broker.meters.transactions_fenced.items()):
        yield Sample(count, (("cause", cause),))


def _certificate_ends(broker: Observed) -> Iterator[Sample]:
    for listener, end in sorted(broker.meters.certificate_ends.items()):
        yield Sample(end, (("listener", listener),))


# ---- requests


def _by_api(value: Callable[[ApiTimes], float]) -> Callable[[Observed], Iterator[Sample]]:
    def read(broker: Observed) -> Iterator[Sample]:
        meter = broker.connections.meter
        for key, times in sorted(meter.by_api.items()) if meter is not None else ():
            yield Sample(value(times), (("request", api_name(key)),))

    return read


def _request_times(broker: Observed) -> Iterator[Sample]:
    meter = broker.connections.meter
    for key, times in sorted(meter.by_api.items()) if meter is not None else ():
        api = ("request", api_name(key))
        so_far = 0
        for end_ms, count in zip(BUCKETS_MS, times.buckets, strict=False):
            so_far += count
            yield Sample(so_far, (api, ("le", f"{end_ms:g}")), "_bucket")
        yield Sample(times.count, (api, ("le", "+Inf")), "_bucket")
        yield Sample(times.total_ms, (api,), "_sum")
        yield Sample(times.count, (api,), "_count")


def api_name(key: int) -> str:
    """The API as Kafka spells it; what nobody knows has one name, whatever number a client sent."""
    try:
        return ApiKey(key).spelling
    except ValueError:
        return "Unknown"


METRICS: Final = (
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "1 starting, 3 running, 6 in controlled shutdown.",
        lambda broker: {"starting": 1, "running": 3, "stopping": 6}[broker.state.value],
    ),
    gauge(
        "kafka_server_replicamanager_partitioncount",
        "Replicas on this broker.",
        lambda broker: sum(1 for _ in broker.partitions.all()),
    ),
    gauge(
        "kafka_server_replicamanager_leadercount",
        "Replicas on this broker that lead.",
        lambda broker: sum(partition.leader is not None for partition in broker.partitions.all()),
    ),
    gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here whose ISR is smaller than their replicas, those that are being added left out.",
        lambda broker: sum(leader.is_under_replicated for leader in leaders(broker)),
    ),
    gauge(
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here whose ISR is below min.insync.replicas: acks=all is refused.",
        lambda broker: sum(leader.is_under_min_isr for leader in leaders(broker)),
    ),
    gauge(
        "kafka_server_replicamanager_atminisrpartitioncount",
        "Partitions led here whose ISR is exactly min.insync.replicas.",
        lambda broker: sum(map(is_at_min_isr, leaders(broker))),
    ),
    gauge(
        "kafka_server_replicamanager_offlinereplicacount",
        "Replicas of this broker in log directories that failed.",
        lambda broker: broker.partitions.offline_count,
    ),
    gauge(
        "kafka_server_replicamanager_reassigningpartitions",
        "Partitions led here that are being reassigned.",
        _reassigning,
    ),
    counter(
        "kafka_server_replicamanager_isrshrinks_total",
        "Times that a replica was taken out of an ISR led here.",
        lambda broker: broker.meters.isr_shrinks,
    ),
    counter(
        "kafka_server_replicamanager_isrexpands_total",
        "Times that a replica came into an ISR led here.",
        lambda broker: broker.meters.isr_expands,
    ),
    counter(
        "kafka_server_brokertopicmetrics_messagesin_total",
        "Records appended by producers.",
        lambda broker: broker.meters.records_in,
    ),
    counter(
        "kafka_server_brokertopicmetrics_bytesin_total",
        "Bytes of batches appended by producers.",
        lambda broker: broker.meters.bytes_in,
    ),
    counter(
        "kafka_server_brokertopicmetrics_bytesout_total",
        "Bytes of batches read by consumers.",
        lambda broker: broker.meters.bytes_out,
    ),
    counter(
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        "Bytes of batches that followers here appended.",
        lambda broker: broker.meters.replication_bytes_in,
    ),
    counter(
        "kafka_server_brokertopicmetrics_replicationbytesout_total",
        "Bytes of batches that followers elsewhere read here.",
        lambda broker: broker.meters.replication_bytes_out,
    ),
    gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait: fetches for data, produces for their followers.",
        lambda broker: broker.waiting.deadlines.count(),
    ),
    gauge(
        "kafka_network_socketserver_connectioncount",
        "Open connections of clients and other brokers.",
        lambda broker: len(broker.connections),
    ),
    Metric(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "Requests answered, by API.",
        _by_api(lambda times: times.count),
    ),
    Metric(
        "kafka_network_requestmetrics_requestbytes_total",
        "counter",
        "Bytes of requests, by API.",
        _by_api(lambda times: times.bytes_in),
    ),
    Metric(
        "kafka_network_requestmetrics_responsebytes_total",
        "counter",
        "Bytes of answers, by API.",
        _by_api(lambda times: times.bytes_out),
    ),
    Metric(
        "kafka_network_requestmetrics_totaltimems",
        "histogram",
        "Milliseconds from a request's arrival to its answer, waiting included, by API.",
        _request_times,
    ),
    gauge(
        "kafka_server_zookeepersession_connected",
        "1 while the ZooKeeper session is connected.",
        lambda broker: broker.zk.is_connected,
    ),
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the controller, 0 elsewhere: the sum over the cluster should be 1.",
        lambda broker: broker.controller.is_active,
    ),
    gauge(
        "kafka_controller_kafkacontroller_controllerepoch",
        "The highest controller epoch that this broker has seen.",
        lambda broker: broker.identity.controller_epoch,
    ),
    gauge(
        "kafka_controller_kafkacontroller_activebrokercount",
        "Registered brokers, on the controller.",
        _of_controller(lambda context: len(context.brokers)),
    ),
    gauge(
        "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics of the cluster, on the controller.",
        _of_controller(lambda context: len(context.topics)),
    ),
    gauge(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions of the cluster, on the controller.",
        _of_controller(lambda context: len(context.partitions)),
    ),
    gauge(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a leader that is alive, on the controller.",
        _of_controller(_offline),
    ),
    gauge(
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "Partitions that their preferred replica does not lead, on the controller.",
        _of_controller(_not_preferred),
    ),
    gauge(
        "kafka_controller_kafkacontroller_topicstodeletecount",
        "Topics whose deletion is not finished, on the controller.",
        _of_controller(lambda context: len(context.queued_for_deletion)),
    ),
    Metric(
        "kafka_controller_controllerstats_leaderelections_total",
        "counter",
        "Leaders chosen by this broker as controller, by the rule that chose them.",
        _elections,
    ),
    counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders chosen outside the ISR by this broker as controller: acknowledged records may be gone.",
        lambda broker: broker.meters.elections[Rule.UNCLEAN],
    ),
    gauge(
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize",
        "Markers of ended transactions that no leader has taken yet: readers wait there.",
        lambda broker: broker.markers.waiting,
    ),
    gauge(
        "ottla_transactions_prepared",
        "Prepared transactions coordinated here: no time-out ends them.",
        lambda broker: sum(len(s.prepared) for s in broker.transaction_coordinator.serving()),
    ),
    gauge(
        "ottla_transactions_prepared_oldest_seconds",
        "How long ago the oldest prepared transaction coordinated here began; 0 if there is none.",
        _oldest_prepared_s,
    ),
    Metric(
        "ottla_transactions_fenced_total",
        "counter",
        "Open transactions that this broker aborted as coordinator in place of their producers, by cause.",
        _fenced,
    ),
    Metric(
        "ottla_tls_certificate_end_seconds",
        "gauge",
        "When the certificate of a TLS listener ends, in seconds since 1970.",
        _certificate_ends,
    ),
    _of_clients(
        "kafka_server_produce_byte_rate",
        "Bytes a second that clients with a quota for them produce.",
        quota_gauges.rates("produce"),
    ),
    _of_clients(
        "kafka_server_produce_throttle_time",
        "How many milliseconds such a client was last told to wait.",
        quota_gauges.throttle_times("produce"),
    ),
    _of_clients(
        "kafka_server_fetch_byte_rate",
        "Bytes a second that clients with a quota for them fetch.",
        quota_gauges.rates("fetch"),
    ),
    _of_clients(
        "kafka_server_fetch_throttle_time",
        "How many milliseconds such a client was last told to wait.",
        quota_gauges.throttle_times("fetch"),
    ),
    _of_clients(
        "kafka_server_request_request_time",
        "Percent of a second that requests of clients with a quota for it take.",
        quota_gauges.rates("request"),
    ),
    _of_clients(
        "kafka_server_request_throttle_time",
        "How many milliseconds such a client was last told to wait.",
        quota_gauges.throttle_times("request"),
    ),
    _of_clients(
        "kafka_server_controllermutation_tokens",
        "How many changes of partitions clients with a quota for them have left, on the controller.",
        quota_gauges.tokens("mutations"),
    ),
    counter(
        "ottla_decisions_dropped_total",
        "Decisions that did not fit into memory while their topic could not take them.",
        lambda broker: broker.decisions.dropped,
    ),
    *DASHBOARD_METRICS,
)
