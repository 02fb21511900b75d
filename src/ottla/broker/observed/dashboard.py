"""Names that dashboards for Kafka ask for besides: sums over this broker, not a series a partition."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ottla.broker.observed.metric import Metric, Observed, Sample, counter, gauge, is_at_min_isr, leaders
from ottla.wire.keys import ApiKey


def _answered(broker: Observed, api: ApiKey) -> int:
    meter = broker.connections.meter
    times = None if meter is None else meter.by_api.get(api)
    return 0 if times is None else times.count


def _sizes(broker: Observed) -> Iterator[Sample]:
    sizes = Counter(dict.fromkeys(broker.log_dirs.live_paths, 0))
    for log in broker.log_dirs.logs.values():
        sizes[log.directory] += log.size_bytes
    for directory, size in sorted(sizes.items()):
        yield Sample(size, (("directory", directory),))


def _connections(broker: Observed) -> Iterator[Sample]:
    for listener, count in sorted(broker.connections.by_listener().items()):
        yield Sample(count, (("listener", listener),))


def _idle(broker: Observed) -> Iterator[Sample]:
    if broker.meters.idle is not None:
        yield Sample(broker.meters.idle.share())


DASHBOARD_METRICS: Final = (
    counter(
        "kafka_server_brokertopicmetrics_totalproducerequests_total",
        "Produce requests answered; Kafka counts each partition in them.",
        lambda broker: _answered(broker, ApiKey.PRODUCE),
    ),
    counter(
        "kafka_server_brokertopicmetrics_totalfetchrequests_total",
        "Fetch requests answered, those of followers as well; Kafka counts each partition in them.",
        lambda broker: _answered(broker, ApiKey.FETCH),
    ),
    counter(
        "kafka_server_brokertopicmetrics_failedproducerequests_total",
        "Batches refused by the log of a partition led here, or for too few replicas in sync; what a wrong"
        " leader, size or checksum explains is left out, as in Kafka.",
        lambda broker: broker.meters.produces_failed + broker.meters.internal_errors[ApiKey.PRODUCE],
    ),
    counter(
        "kafka_server_brokertopicmetrics_failedfetchrequests_total",
        "Fetch requests that ended in an internal error; refusals are left out, as in Kafka.",
        lambda broker: broker.meters.internal_errors[ApiKey.FETCH],
    ),
    Metric(
        "kafka_log_log_size",
        "gauge",
        "Bytes of all logs, by log directory.",
        _sizes,
    ),
    gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.",
        lambda broker: len(broker.log_dirs.offline),
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "Open connections, by listener.",
        _connections,
    ),
    gauge(
        "kafka_cluster_partition_underminisr",
        "Partitions led here whose ISR is below min.insync.replicas, in one number.",
        lambda broker: sum(leader.is_under_min_isr for leader in leaders(broker)),
    ),
    gauge(
        "kafka_cluster_partition_atminisr",
        "Partitions led here whose ISR is exactly min.insync.replicas, in one number.",
        lambda broker: sum(map(is_at_min_isr, leaders(broker))),
    ),
    Metric(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "gauge",
        "Share of the time since the last reading, 0 to 1, in which the thread that handles requests computed"
        " nothing.",
        _idle,
    ),
    Metric(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "gauge",
        "The same number: one thread reads, handles and answers.",
        _idle,
    ),
)
