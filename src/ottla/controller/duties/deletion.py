"""Deleting topics: every replica deletes its log, then the topic leaves ZooKeeper.

A topic waits while one of its replicas is offline or refuses; it is tried again when that broker begins a new
life. The logs that can be deleted are deleted at once. A reassignment under way ends here: old and new
replicas are deleted alike. (Kafka lets the reassignment finish first, and waits for ever if it cannot.)
"""

from collections.abc import Iterable

from ottla.controller.context import ControllerContext, Partition, Topic
from ottla.controller.effects import ClearDeletionMarkers, KeepReassignments, RemoveTopics
from ottla.controller.events import DeletionsRequested, ReplicasDeleted, TopicsRemoved
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.turns import Turn, awaited
from ottla.model.ids import BrokerId


def on_deletions_requested(context: ControllerContext, event: DeletionsRequested) -> Turn[None]:
    """Queue the topics that exist, clear the markers of those that do not, and begin."""
    enqueue(context, event.topics, event.cause)
    yield from resume(context, event.cause)


def enqueue(context: ControllerContext, topics: Iterable[str], cause: str) -> None:
    """Remember what shall be deleted; topics that nobody knows have only their marker removed."""
    unknown = [name for name in topics if name not in context.topics]
    if unknown:
        context.outbox.append(ClearDeletionMarkers(tuple(unknown), cause))
    for name in topics:
        topic = context.topics.get(name)
        if topic is None or topic.is_queued_for_deletion:
            continue
        topic.is_queued_for_deletion = True
        context.queued_for_deletion[name] = None
    legacy = context.legacy_reassignments
    left = {key: target for key, target in legacy.items() if key.topic not in context.queued_for_deletion}
    if len(left) < len(legacy):
        context.legacy_reassignments = left
        context.outbox.append(KeepReassignments(dict(left), cause))


def resume(context: ControllerContext, cause: str) -> Turn[None]:
    """Remove what is deleted everywhere, and start what may start."""
    topics = [context.topics[name] for name in context.queued_for_deletion]
    for topic in topics:
        if _may_start(context, topic):
            _start(context, topic)
    context.requests.flush(cause)
    done = tuple(topic.name for topic in topics if _is_deleted_everywhere(topic))
    if done:
        yield from awaited(RemoveTopics(done, cause), TopicsRemoved)
        forget(context, done)


def retry(context: ControllerContext, brokers: frozenset[BrokerId]) -> None:
    """These brokers joined: what waited for their replicas may be tried again."""
    for name in context.queued_for_deletion:
        topic = context.topics[name]
        held = [p for p in topic.partitions.values() if brokers.intersection(p.assignment.replicas)]
        for partition in held:
            for broker in partition.replicas_in(ReplicaState.DELETION_INELIGIBLE):
                if broker in brokers:
                    partition.replica_becomes(broker, ReplicaState.OFFLINE)
        if held:
            context.ineligible_for_deletion.discard(name)


def halt(context: ControllerContext, brokers: frozenset[BrokerId]) -> None:
    """These brokers died: they cannot delete now, whether they were asked or not."""
    for name in context.queued_for_deletion:
        for partition in context.topics[name].partitions.values():
            for broker in partition.assignment.replicas:
                if broker in brokers:
                    cannot_delete(context, partition, broker)


def on_replicas_deleted(context: ControllerContext, event: ReplicasDeleted) -> Turn[None]:
    """A broker answered StopReplica: its replicas are deleted, or wait for its next life.

    Ignore answers of its last life, such as "the request came too late": it was asked again.
    """
    registration = context.brokers.get(event.broker)
    if registration is None or registration.epoch != event.broker_epoch:
        return
    for key in event.deleted:
        partition = context.partitions.get(key)
        if partition is not None and _was_started(partition, event.broker):
            partition.replica_becomes(event.broker, ReplicaState.DELETION_SUCCESSFUL)
    for key in event.refused:
        partition = context.partitions.get(key)
        if partition is not None and _was_started(partition, event.broker):
            cannot_delete(context, partition, event.broker)
    yield from resume(context, event.cause)


def forget(context: ControllerContext, names: Iterable[str]) -> None:
    """The topics are gone: no replica, no partition, no topic is left in memory."""
    for name in names:
        for partition in context.topics[name].partitions.values():
            if partition.status is not PartitionState.NON_EXISTENT:
                partition.become(PartitionState.OFFLINE)
                partition.become(PartitionState.NON_EXISTENT)
        context.remove_topic(name)


def _may_start(context: ControllerContext, topic: Topic) -> bool:
    if topic.name in context.ineligible_for_deletion:
        return False
    waiting = any(
        partition.replicas_in(ReplicaState.DELETION_STARTED) for partition in topic.partitions.values()
    )
    return not waiting and not _is_deleted_everywhere(topic)


def _start(context: ControllerContext, topic: Topic) -> None:
    """Nobody may use the topic any more; every live replica deletes its log."""
    context.requests.update_metadata(topic.partitions.values())
    for partition in topic.partitions.values():
        if partition.status is not PartitionState.NON_EXISTENT:
            partition.become(PartitionState.OFFLINE)
            partition.become(PartitionState.NON_EXISTENT)
        for broker in partition.assignment.replicas:
            if partition.replica_state(broker) is ReplicaState.DELETION_SUCCESSFUL:
                continue
            if not context.is_online(partition, broker):
                cannot_delete(context, partition, broker)
                continue
            partition.replica_becomes(broker, ReplicaState.OFFLINE)
            partition.replica_becomes(broker, ReplicaState.DELETION_STARTED)
            context.requests.stop_replica(partition, broker, delete=True)


def cannot_delete(context: ControllerContext, partition: Partition, broker: BrokerId) -> None:
    """This replica is offline or refuses: the topic waits for it."""
    state = partition.replica_state(broker)
    if state is ReplicaState.DELETION_SUCCESSFUL:
        return
    if state in (ReplicaState.NEW, ReplicaState.ONLINE):
        partition.replica_becomes(broker, ReplicaState.OFFLINE)
    if state is not ReplicaState.DELETION_INELIGIBLE:
        partition.replica_becomes(broker, ReplicaState.DELETION_INELIGIBLE)
    context.ineligible_for_deletion.add(partition.topic.name)


def _was_started(partition: Partition, broker: BrokerId) -> bool:
    return partition.replica_state(broker) is ReplicaState.DELETION_STARTED


def _is_deleted_everywhere(topic: Topic) -> bool:
    return all(
        state is ReplicaState.DELETION_SUCCESSFUL
        for partition in topic.partitions.values()
        for state in partition.replica_states
    )
