"""Taking office: from one picture of the whole cluster to a controller that serves, in Kafka's order."""

from ottla.controller.context import ControllerContext
from ottla.controller.duties import deletion, preferred, reassignment
from ottla.controller.duties.topics import write_new_topic_ids
from ottla.controller.effects import Connect, InOffice, Refuse
from ottla.controller.events import TookOffice
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Settling
from ottla.controller.turns import Turn
from ottla.model.ids import BrokerId


def take_office(context: ControllerContext, event: TookOffice) -> Turn[None]:
    """Know everything, tell everybody, settle what the last controller left, and finish what it began."""
    cause = event.cause
    _fill(context, event)
    yield from write_new_topic_ids(event.topics, cause)
    for broker in context.brokers.values():
        context.outbox.append(Connect(broker, cause))
    deletion.enqueue(context, event.deletions, cause)
    # A broker does not follow a leader that its metadata does not know: who is alive comes first.
    context.requests.send_metadata(list(context.brokers), (), cause)

    _take_states(context)
    kept = [p for p in context.partitions.values() if not p.topic.is_queued_for_deletion]
    yield from Settling(context, cause).run(kept)
    for partition in kept:
        if partition.state is not None:
            context.requests.leader_and_isr(partition, partition.assignment.replicas)
    if context.partitions:
        context.requests.update_metadata(context.partitions.values())
    context.requests.flush(cause)

    if event.reassignments is not None:
        yield from reassignment.take_legacy(context, event.reassignments, cause)
    yield from reassignment.resume(context, cause)
    yield from deletion.resume(context, cause)
    if event.preferred_elections is not None:
        yield from preferred.take_legacy(context, event.preferred_elections, cause)
    context.outbox.append(InOffice(cause))


def _fill(context: ControllerContext, event: TookOffice) -> None:
    context.set_brokers(event.brokers)
    for name, found in event.topics.items():
        context.add_topic(name, found, event.states)
    for key in event.states:
        if key not in context.partitions:
            context.outbox.append(Refuse(f"state of {key}", "the topic's assignment has no such partition"))


def _take_states(context: ControllerContext) -> None:
    """The start of both state machines: what is there, before anything is done about it."""
    told: dict[tuple[BrokerId, ...], tuple[ReplicaState, ...]] = {}
    for partition in context.partitions.values():
        replicas = partition.assignment.replicas
        states = told.get(replicas)
        if states is None:
            states = told[replicas] = _replica_states(context, replicas)
        partition.replica_states = states
        if partition.topic.is_queued_for_deletion:
            continue
        if partition.state is not None:
            serving = context.is_leader_serving(partition)
            partition.become(PartitionState.ONLINE if serving else PartitionState.OFFLINE)


def _replica_states(context: ControllerContext, replicas: tuple[BrokerId, ...]) -> tuple[ReplicaState, ...]:
    return tuple(
        [ReplicaState.ONLINE if broker in context.live else ReplicaState.OFFLINE for broker in replicas]
    )
