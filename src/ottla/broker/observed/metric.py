"""What a metric is: its name, what it tells, and how it is read from a broker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ottla.broker.clients.connections import Connections
from ottla.broker.controlling.candidate import ControllerHost
from ottla.broker.coordinating.host import CoordinatorHost
from ottla.broker.coordinating.markers import MarkerSender
from ottla.broker.decisions.log import DecisionLog
from ottla.broker.quotas.enforcer import ClientQuotas
from ottla.broker.replicas.hosted import Partitions
from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.identity import Identity
from ottla.broker.runtime.meters import Meters
from ottla.broker.runtime.parked import Waiting
from ottla.broker.runtime.state import BrokerState
from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.coordinator.txn.core import TransactionShard
from ottla.replication.leader import PartitionLeader
from ottla.storage.directories.log_dirs import LogDirs

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One number."""

    value: float
    labels: Labels = ()
    suffix: str = ""


class Observed(Protocol):
    """The parts of a broker that metrics are read from."""

    state: BrokerState
    identity: Identity
    meters: Meters
    zk: ZooKeeper
    connections: Connections
    waiting: Waiting
    partitions: Partitions
    controller: ControllerHost
    decisions: DecisionLog
    markers: MarkerSender
    transaction_coordinator: CoordinatorHost[TransactionShard]
    clock: Clock
    log_dirs: LogDirs
    client_quotas: ClientQuotas


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, its kind (counter, gauge or histogram), what it tells, and its reading."""

    name: str
    kind: str
    help: str
    read: Callable[[Observed], Iterator[Sample]]


def gauge(name: str, help: str, value: Callable[[Observed], float]) -> Metric:
    return Metric(name, "gauge", help, lambda broker: iter([Sample(value(broker))]))


def counter(name: str, help: str, value: Callable[[Observed], float]) -> Metric:
    return Metric(name, "counter", help, lambda broker: iter([Sample(value(broker))]))


def leaders(broker: Observed) -> Iterator[PartitionLeader]:
    """The leaders of the partitions led here."""
    return (leader for partition in broker.partitions.all() if (leader := partition.leader) is not None)


def is_at_min_isr(leader: PartitionLeader) -> bool:
    """One failure more, and acks=all is refused."""
    return len(leader.isr.committed) == leader.effective_min_isr
