"""Topics that appear, grow and vanish."""

from collections.abc import Iterable, Mapping

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.duties import deletion
from ottla.controller.effects import Refuse
from ottla.controller.events import TopicChanged, TopicFound, TopicsChanged
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Settling
from ottla.controller.turns import Turn, write_topics
from ottla.model.ids import TopicPartition
from ottla.model.partition_state import LeaderAndIsr


def on_topics_changed(context: ControllerContext, event: TopicsChanged) -> Turn[None]:
    """New topics get their leaders; those that somebody removed by hand are forgotten everywhere."""
    _forget(context, [name for name in context.topics if name not in event.names], event.cause)
    added = {name: found for name, found in event.found.items() if name not in context.topics}
    for name, found in event.found.items():
        if name not in added:
            yield from on_topic_changed(context, TopicChanged(name, found, event.cause))
    yield from write_new_topic_ids(added, event.cause)
    yield from add_topics(context, added, event.states, event.cause)


def on_topic_changed(context: ControllerContext, event: TopicChanged) -> Turn[None]:
    """Partitions that were added get their leaders. While a topic is deleted it does not grow."""
    topic = context.topics.get(event.topic)
    if topic is None:
        return
    found = event.found
    if found.id_is_new:
        # Somebody who does not know topic ids has rewritten the znode: the id stays what it was.
        yield from write_topics({topic.name: (topic.id, found.partitions)}, event.cause)
    elif found.topic_id != topic.id:
        context.outbox.append(Refuse(f"topic {topic.name}", "its topic id changed under the controller"))
        return
    added = {index: a for index, a in found.partitions.items() if index not in topic.partitions}
    if added and topic.is_queued_for_deletion:
        context.outbox.append(Refuse(f"topic {topic.name}", "no partitions are added while it is deleted"))
        yield from write_topics({topic.name: (topic.id, topic.assignments)}, event.cause)
        return
    partitions = [context.add_partition(topic, index, a) for index, a in sorted(added.items())]
    yield from bring_online(context, partitions, event.cause)


def add_topics(
    context: ControllerContext,
    added: Mapping[str, TopicFound],
    states: Mapping[TopicPartition, LeaderAndIsr],
    cause: str,
) -> Turn[None]:
    """Topics that were not known get their leaders."""
    partitions: list[Partition] = []
    for name, found in added.items():
        partitions += context.add_topic(name, found, states).partitions.values()
    yield from bring_online(context, partitions, cause)


def write_new_topic_ids(topics: Mapping[str, TopicFound], cause: str) -> Turn[None]:
    """Topics from before topic ids get one written."""
    new = {name: (found.topic_id, found.partitions) for name, found in topics.items() if found.id_is_new}
    if new:
        yield from write_topics(new, cause)


def bring_online(context: ControllerContext, partitions: Iterable[Partition], cause: str) -> Turn[None]:
    """Partitions that were just added get their leaders, and their brokers hear of it."""
    fresh = list(partitions)
    for partition in fresh:
        if partition.state is not None:
            serving = context.is_leader_serving(partition)
            partition.become(PartitionState.ONLINE if serving else PartitionState.OFFLINE)
    yield from Settling(context, cause).run(fresh)
    for partition in fresh:
        partition.replica_states = tuple(
            [
                ReplicaState.ONLINE if context.is_online(partition, broker) else ReplicaState.OFFLINE
                for broker in partition.assignment.replicas
            ]
        )
        if partition.state is not None:
            # A state that stood there already was perhaps never told to anybody.
            context.requests.leader_and_isr(partition, partition.assignment.replicas)
    context.requests.flush(cause)


def _forget(context: ControllerContext, names: list[str], cause: str) -> None:
    if not names:
        return
    gone: list[Partition] = []
    for name in names:
        topic = context.topics[name]
        topic.is_queued_for_deletion = True
        gone += topic.partitions.values()
    context.requests.update_metadata(gone)
    context.requests.flush(cause)
    deletion.forget(context, names)
