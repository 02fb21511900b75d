"""Every metric of a broker: Kafka's names as its exporters write them, Kafka's meaning, and how it is read.

Nothing here is labelled by topic, partition or client, so that the number of series stays small however large
the cluster is: the one label is the API, or the rule of an election.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.broker.meters import BUCKETS_MS, ApiTimes
from ottla.controller.election import Rule
from ottla.wire.keys import ApiKey

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.controller.context import ControllerContext
    from ottla.replication.leader import PartitionLeader

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One number."""

    value: float
    labels: Labels = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, its kind (counter, gauge or histogram), what it tells, and its reading."""

    name: str
    kind: str
    help: str
    read: Callable[["Node"], Iterator[Sample]]


def _one(value: "Callable[[Node], float]") -> "Callable[[Node], Iterator[Sample]]":
    def read(node: "Node") -> Iterator[Sample]:
        yield Sample(value(node))

    return read


# ---- the replicas here


def _leaders(node: "Node") -> "Iterator[PartitionLeader]":
    return (leader for partition in node.partitions.all() if (leader := partition.leader) is not None)


def _under_replicated(node: "Node") -> int:
    return sum(leader.is_under_replicated for leader in _leaders(node))


def _under_min_isr(node: "Node") -> int:
    return sum(leader.is_under_min_isr for leader in _leaders(node))


def _at_min_isr(node: "Node") -> int:
    return sum(len(leader.isr.committed) == leader.effective_min_isr for leader in _leaders(node))


def _reassigning(node: "Node") -> int:
    return sum(
        1
        for partition in node.partitions.all()
        if partition.leader is not None and (partition.assignment.adding or partition.assignment.removing)
    )


# ---- the controller's view: zero on every broker that is not it, as with Kafka


def _of_controller(count: "Callable[[ControllerContext], int]") -> "Callable[[Node], int]":
    def value(node: "Node") -> int:
        term = node.controller.term
        return 0 if term is None else count(term.core.context)

    return value


def _offline(context: "ControllerContext") -> int:
    return sum(
        1
        for partition in context.partitions.values()
        if partition.key.topic not in context.queued_for_deletion
        and (partition.state is None or not context.is_online(partition, partition.state.leader))
    )


def _not_preferred(context: "ControllerContext") -> int:
    return sum(
        1
        for partition in context.partitions.values()
        if partition.key.topic not in context.queued_for_deletion
        and (partition.state is None or partition.state.leader != partition.assignment.replicas[0])
    )


def _elections(node: "Node") -> Iterator[Sample]:
    for rule, count in sorted(node.meters.elections.items(), key=lambda item: item[0].value):
        yield Sample(count, (("rule", rule.value),))


# ---- requests


def _by_api(value: "Callable[[ApiTimes], float]") -> "Callable[[Node], Iterator[Sample]]":
    def read(node: "Node") -> Iterator[Sample]:
        meter = node.connections.meter
        for key, times in sorted(meter.by_api.items()) if meter is not None else ():
            yield Sample(value(times), (("request", api_name(key)),))

    return read


def _request_times(node: "Node") -> Iterator[Sample]:
    meter = node.connections.meter
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
        return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
    except ValueError:
        return "Unknown"


METRICS: Final = (
    Metric(
        "kafka_server_kafkaserver_brokerstate",
        "gauge",
        "1 starting, 3 running, 6 in controlled shutdown.",
        _one(lambda node: {"starting": 1, "running": 3, "stopping": 6}[node.state.value]),
    ),
    Metric(
        "kafka_server_replicamanager_partitioncount",
        "gauge",
        "Replicas on this broker.",
        _one(lambda node: sum(1 for _ in node.partitions.all())),
    ),
    Metric(
        "kafka_server_replicamanager_leadercount",
        "gauge",
        "Replicas on this broker that lead.",
        _one(lambda node: sum(partition.leader is not None for partition in node.partitions.all())),
    ),
    Metric(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "gauge",
        "Partitions led here whose ISR is smaller than their replicas, those that are being added left out.",
        _one(_under_replicated),
    ),
    Metric(
        "kafka_server_replicamanager_underminisrpartitioncount",
        "gauge",
        "Partitions led here whose ISR is below min.insync.replicas: acks=all is refused.",
        _one(_under_min_isr),
    ),
    Metric(
        "kafka_server_replicamanager_atminisrpartitioncount",
        "gauge",
        "Partitions led here whose ISR is exactly min.insync.replicas.",
        _one(_at_min_isr),
    ),
    Metric(
        "kafka_server_replicamanager_offlinereplicacount",
        "gauge",
        "Replicas of this broker in log directories that failed.",
        _one(lambda node: node.partitions.offline_count),
    ),
    Metric(
        "kafka_server_replicamanager_reassigningpartitions",
        "gauge",
        "Partitions led here that are being reassigned.",
        _one(_reassigning),
    ),
    Metric(
        "kafka_server_replicamanager_isrshrinks_total",
        "counter",
        "Times that a replica was taken out of an ISR led here.",
        _one(lambda node: node.meters.isr_shrinks),
    ),
    Metric(
        "kafka_server_replicamanager_isrexpands_total",
        "counter",
        "Times that a replica came into an ISR led here.",
        _one(lambda node: node.meters.isr_expands),
    ),
    Metric(
        "kafka_server_brokertopicmetrics_messagesin_total",
        "counter",
        "Records appended by producers.",
        _one(lambda node: node.meters.records_in),
    ),
    Metric(
        "kafka_server_brokertopicmetrics_bytesin_total",
        "counter",
        "Bytes of batches appended by producers.",
        _one(lambda node: node.meters.bytes_in),
    ),
    Metric(
        "kafka_server_brokertopicmetrics_bytesout_total",
        "counter",
        "Bytes of batches read by consumers.",
        _one(lambda node: node.meters.bytes_out),
    ),
    Metric(
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        "counter",
        "Bytes of batches that followers here appended.",
        _one(lambda node: node.meters.replication_bytes_in),
    ),
    Metric(
        "kafka_server_brokertopicmetrics_replicationbytesout_total",
        "counter",
        "Bytes of batches that followers elsewhere read here.",
        _one(lambda node: node.meters.replication_bytes_out),
    ),
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "gauge",
        "Requests that wait: fetches for data, produces for their followers.",
        _one(lambda node: node.waiting.deadlines.count()),
    ),
    Metric(
        "kafka_network_socketserver_connectioncount",
        "gauge",
        "Open connections of clients and other brokers.",
        _one(lambda node: len(node.connections)),
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
    Metric(
        "kafka_server_zookeepersession_connected",
        "gauge",
        "1 while the ZooKeeper session is connected.",
        _one(lambda node: node.zk.is_connected),
    ),
    Metric(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "gauge",
        "1 on the controller, 0 elsewhere: the sum over the cluster should be 1.",
        _one(lambda node: node.controller.is_active),
    ),
    Metric(
        "kafka_controller_kafkacontroller_controllerepoch",
        "gauge",
        "The highest controller epoch that this broker has seen.",
        _one(lambda node: node.controller_epoch),
    ),
    Metric(
        "kafka_controller_kafkacontroller_activebrokercount",
        "gauge",
        "Registered brokers, on the controller.",
        _one(_of_controller(lambda context: len(context.brokers))),
    ),
    Metric(
        "kafka_controller_kafkacontroller_globaltopiccount",
        "gauge",
        "Topics of the cluster, on the controller.",
        _one(_of_controller(lambda context: len(context.topics))),
    ),
    Metric(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "gauge",
        "Partitions of the cluster, on the controller.",
        _one(_of_controller(lambda context: len(context.partitions))),
    ),
    Metric(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "gauge",
        "Partitions without a leader that is alive, on the controller.",
        _one(_of_controller(_offline)),
    ),
    Metric(
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "gauge",
        "Partitions that their preferred replica does not lead, on the controller.",
        _one(_of_controller(_not_preferred)),
    ),
    Metric(
        "kafka_controller_kafkacontroller_topicstodeletecount",
        "gauge",
        "Topics whose deletion is not finished, on the controller.",
        _one(_of_controller(lambda context: len(context.queued_for_deletion))),
    ),
    Metric(
        "kafka_controller_controllerstats_leaderelections_total",
        "counter",
        "Leaders chosen by this broker as controller, by the rule that chose them.",
        _elections,
    ),
    Metric(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "counter",
        "Leaders chosen outside the ISR by this broker as controller: acknowledged records may be gone.",
        _one(lambda node: node.meters.elections[Rule.UNCLEAN]),
    ),
    Metric(
        "ottla_decisions_dropped_total",
        "counter",
        "Decisions that did not fit into memory while their topic could not take them.",
        _one(lambda node: node.controller.decisions.dropped),
    ),
)
