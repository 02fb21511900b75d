"""Brokers that join, die, come back in a new life, or change their endpoints."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.duties import deletion, reassignment
from ottla.controller.effects import Connect, Disconnect
from ottla.controller.events import BrokersChanged
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Settling
from ottla.controller.turns import Turn
from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId


class Movement(NamedTuple):
    """How the brokers changed since the controller last looked."""

    joined: frozenset[BrokerId]
    bounced: frozenset[BrokerId]
    """Known, but with another epoch: the broker died and came back, even if its znode never looked absent."""
    gone: frozenset[BrokerId]
    updated: frozenset[BrokerId]

    @property
    def arrived(self) -> frozenset[BrokerId]:
        return self.joined | self.bounced

    @property
    def lost(self) -> frozenset[BrokerId]:
        return self.gone | self.bounced


def movement(context: ControllerContext, brokers: Iterable[BrokerRegistration]) -> Movement:
    """Compare the brokers that are registered with those that are known."""
    known, now = context.brokers, {broker.broker: broker for broker in brokers}
    both = known.keys() & now.keys()
    return Movement(
        joined=frozenset(now.keys() - known.keys()),
        bounced=frozenset(b for b in both if now[b].epoch != known[b].epoch),
        gone=frozenset(known.keys() - now.keys()),
        updated=frozenset(b for b in both if now[b].epoch == known[b].epoch and now[b] != known[b]),
    )


def on_brokers_changed(context: ControllerContext, event: BrokersChanged) -> Turn[None]:
    """Lost brokers lose what they led; brokers that arrive learn everything; then what waited goes on."""
    moved = movement(context, event.brokers)
    if not (moved.arrived or moved.gone or moved.updated):
        return
    _take_brokers(context, event, moved)
    if not (moved.arrived or moved.gone):
        context.requests.update_metadata()
        context.requests.flush(event.cause)
        return
    touched = _take_replica_states(context, moved)
    deletion.halt(context, moved.lost)
    deletion.retry(context, moved.arrived)
    unsettled = [p for p in context.partitions.values() if _is_unsettled(context, p, moved)]
    yield from Settling(context, event.cause, bounced=moved.bounced).run(unsettled)
    _tell(context, moved, touched, event.cause)
    if moved.arrived:
        waited_for = [p for p in touched if not moved.arrived.isdisjoint(p.assignment.target)]
        yield from reassignment.resume(context, event.cause, waited_for)
    yield from deletion.resume(context, event.cause)


def _take_brokers(context: ControllerContext, event: BrokersChanged, moved: Movement) -> None:
    for broker in sorted(moved.lost):
        context.forget_failures(broker)
    context.set_brokers(event.brokers)
    for broker in sorted(moved.arrived | moved.updated):
        context.outbox.append(Connect(context.brokers[broker], event.cause))
    for broker in sorted(moved.gone):
        context.outbox.append(Disconnect(broker, event.cause))


def _take_replica_states(context: ControllerContext, moved: Movement) -> list[Partition]:
    """Their replicas go offline or come online; returns the partitions that have such replicas."""
    touched = []
    concerned = moved.arrived | moved.gone
    for partition in context.partitions.values():
        replicas = partition.assignment.replicas
        if concerned.isdisjoint(replicas):
            continue
        touched.append(partition)
        if not partition.topic.is_queued_for_deletion:
            for broker in concerned.intersection(replicas):
                arrived = broker in moved.arrived
                partition.replica_becomes(broker, ReplicaState.ONLINE if arrived else ReplicaState.OFFLINE)
    return touched


def _is_unsettled(context: ControllerContext, partition: Partition, moved: Movement) -> bool:
    if partition.topic.is_queued_for_deletion:
        return False
    state = partition.state
    if state is None or partition.status is not PartitionState.ONLINE:
        return True
    return not moved.lost.isdisjoint(state.isr) or not context.is_leader_serving(partition)


def _tell(context: ControllerContext, moved: Movement, touched: list[Partition], cause: str) -> None:
    if moved.arrived:
        # A broker does not follow a leader that its metadata does not know: who is alive comes first.
        others = [broker for broker in context.brokers if broker not in moved.arrived]
        context.requests.send_metadata(others, (), cause)
        kept = [p for p in context.partitions.values() if not p.topic.is_queued_for_deletion]
        context.requests.send_metadata(sorted(moved.arrived), kept, cause)
        for partition in touched:
            if partition.state is not None and not partition.topic.is_queued_for_deletion:
                hosts = [b for b in partition.assignment.replicas if b in moved.arrived]
                context.requests.leader_and_isr(partition, hosts)
    context.requests.update_metadata(touched)
    context.requests.flush(cause, metadata_except=moved.arrived)
