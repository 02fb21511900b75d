"""Moving partitions to other brokers (KIP-455): add new replicas, wait until they are in sync, drop the old.

The topic's znode holds the union of old and new while it lasts, so that any later controller can finish or
cancel it. A partition is done when all its target replicas are in the ISR; then one write moves the leader if
it must and shrinks the ISR to the target. (Kafka writes the two one after the other.)
"""

from collections.abc import Iterable, Mapping

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.effects import (
    Answer,
    KeepReassignments,
    ReassignmentsTaken,
    ReassignmentsUnderWay,
    Refuse,
)
from ottla.controller.election import Elected, Rule, elect_for_reassigned_partition
from ottla.controller.events import ReassignmentRequested, ReassignmentsListed, ReassignmentsWritten
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Proposal, change_states, next_state
from ottla.controller.turns import Turn, write_topics
from ottla.model.errors import GRANTED, ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

Targets = Mapping[TopicPartition, tuple[BrokerId, ...] | None]
Plans = Mapping[TopicPartition, ReplicaAssignment | Refusal]
_UNKNOWN = ReplicaAssignment(())
"""What a partition has that does not exist: a target is judged before anybody asks whether it does."""


def on_requested(context: ControllerContext, event: ReassignmentRequested) -> Turn[None]:
    """AlterPartitionReassignments: take what is sound, say what is not.

    The latest request counts: remove these partitions from the old znode before anything is written, or the
    next controller would bring them back.
    """
    plans = _plans(context, event.targets)
    _drop_legacy(context, [key for key, plan in plans.items() if not isinstance(plan, Refusal)], event.cause)
    results = yield from _submit(context, plans, event.cause)
    context.outbox.append(Answer(event.token, ReassignmentsTaken(results)))


def on_listed(context: ControllerContext, event: ReassignmentsListed) -> None:
    """ListPartitionReassignments: what is under way."""
    keys = context.partitions if event.partitions is None else event.partitions
    assignments = {
        key: partition.assignment
        for key in keys
        if (partition := context.partitions.get(key)) is not None and partition.assignment.is_being_reassigned
    }
    context.outbox.append(Answer(event.token, ReassignmentsUnderWay(assignments)))


def on_written(context: ControllerContext, event: ReassignmentsWritten) -> Turn[None]:
    """The old tool wrote ``/admin/reassign_partitions``."""
    yield from take_legacy(context, event.targets, event.cause)


def take_legacy(
    context: ControllerContext, targets: Mapping[TopicPartition, tuple[BrokerId, ...]], cause: str
) -> Turn[None]:
    """Take what the old znode holds; what cannot be done leaves it, the rest stays until it is done."""
    fresh = {
        key: replicas
        for key, replicas in targets.items()
        if context.legacy_reassignments.get(key) != replicas
    }
    context.legacy_reassignments = dict(targets)
    results = yield from _submit(context, _plans(context, fresh), cause)
    for key, result in results.items():
        is_refused = result.error is not ErrorCode.NONE
        if is_refused:
            context.outbox.append(Refuse(f"reassignment of {key}", result.why or result.error.name))
        if is_refused or not context.partitions[key].assignment.is_being_reassigned:
            context.legacy_reassignments.pop(key, None)
    if len(context.legacy_reassignments) < len(targets) or not targets:
        context.outbox.append(KeepReassignments(dict(context.legacy_reassignments), cause))


def resume(
    context: ControllerContext, cause: str, partitions: Iterable[Partition] | None = None
) -> Turn[None]:
    """Go on with what is under way: finish what is in sync; tell the replicas of the rest again.

    They are told with the next leader epoch: whoever planned it may have died before anybody heard of it.
    """
    moving = [p for p in (context.partitions.values() if partitions is None else partitions) if _is_moving(p)]
    waiting = [p for p in moving if not _is_in_sync(p)]
    yield from change_states(context, waiting, lambda p: _bump(context, p), cause)
    context.requests.flush(cause)
    yield from complete(context, moving, cause)


def _plans(context: ControllerContext, targets: Targets) -> Plans:
    return {key: _plan(context, key, target) for key, target in targets.items()}


def _submit(context: ControllerContext, plans: Plans, cause: str) -> Turn[dict[TopicPartition, Refusal]]:
    results: dict[TopicPartition, Refusal] = {}
    planned: dict[TopicPartition, ReplicaAssignment] = {}
    for key, plan in plans.items():
        if isinstance(plan, Refusal):
            results[key] = plan
        else:
            results[key] = GRANTED
            if plan != context.partitions[key].assignment:
                planned[key] = plan
    if planned:
        missing = yield from _write_assignments(context, planned, cause)
        for key in [key for key in planned if key.topic in missing]:
            results[key] = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic was removed meanwhile.")
            del planned[key]
        yield from _begin(context, planned, cause)
    return results


def _plan(
    context: ControllerContext, key: TopicPartition, target: tuple[BrokerId, ...] | None
) -> ReplicaAssignment | Refusal:
    partition = context.partitions.get(key)
    assignment = _UNKNOWN if partition is None else partition.assignment
    is_under_way = assignment.is_being_reassigned and target == assignment.target
    if target is None:
        if not assignment.is_being_reassigned:
            return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
        target = assignment.origin
    elif not is_under_way and (unsound := _why_unsound(context, assignment, target)) is not None:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, unsound)
    if partition is None or partition.topic.is_queued_for_deletion:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if is_under_way:
        return assignment  # whoever of the target is alive just now
    plan = reassign(assignment, target)
    if partition.state is not None and not set(plan.replicas) & set(partition.state.isr):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "No replica that would remain is in sync: records would be lost.",
        )
    return plan


def _why_unsound(
    context: ControllerContext, assignment: ReplicaAssignment, target: tuple[BrokerId, ...]
) -> str | None:
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) < len(target):
        return f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    if any(broker < 0 for broker in target):
        return f"Invalid broker id in replica list: {list(target)}"
    added = [broker for broker in target if broker not in assignment.origin]
    offline = [broker for broker in added if broker not in context.live]
    return f"Replica assignment has brokers that are not alive: {offline}" if offline else None


def reassign(assignment: ReplicaAssignment, target: tuple[BrokerId, ...]) -> ReplicaAssignment:
    """The assignment while moving to ``target``: the target first, then the old replicas that shall go."""
    origin = assignment.origin
    replicas = target + tuple(broker for broker in origin if broker not in target)
    return ReplicaAssignment(
        replicas,
        adding=tuple(broker for broker in replicas if broker not in origin),
        removing=tuple(broker for broker in replicas if broker not in target),
    )


def _write_assignments(
    context: ControllerContext, planned: Mapping[TopicPartition, ReplicaAssignment], cause: str
) -> Turn[frozenset[str]]:
    topics: dict[str, tuple[TopicId, dict[int, ReplicaAssignment]]] = {}
    for key, assignment in planned.items():
        if key.topic not in topics:
            topic = context.topics[key.topic]
            topics[key.topic] = (topic.id, topic.assignments)
        topics[key.topic][1][key.partition] = assignment
    missing = yield from write_topics(topics, cause)
    return missing


def _begin(
    context: ControllerContext, planned: Mapping[TopicPartition, ReplicaAssignment], cause: str
) -> Turn[None]:
    """The plan stands in ZooKeeper: raise the leader epoch, so that every replica takes the new list."""
    unneeded: dict[TopicPartition, list[BrokerId]] = {}
    begun = []
    for key, plan in planned.items():
        partition = context.partitions[key]
        unneeded[key] = [b for b in partition.assignment.replicas if b not in plan.replicas]
        partition.reassign(plan)
        begun.append(partition)
    waiting = [p for p in begun if not (p.assignment.is_being_reassigned and _is_in_sync(p))]
    yield from change_states(context, waiting, lambda p: _bump(context, p), cause)
    for partition in begun:
        for broker in unneeded[partition.key]:
            context.requests.stop_replica(partition, broker, delete=True)
    context.requests.update_metadata(begun)
    context.requests.flush(cause)
    yield from complete(context, begun, cause)


def _bump(context: ControllerContext, partition: Partition) -> Proposal | None:
    """Same leader, next epoch; replicas that are not needed any more leave the ISR, and lead no more."""
    state = partition.state
    if state is None:
        return None
    replicas = partition.assignment.replicas
    isr = tuple(member for member in state.isr if member in replicas)
    leader = state.leader
    rule = Rule.NO_OP
    if leader not in replicas and state.has_leader:
        election = elect_for_reassigned_partition(partition.assignment, state, context.online(partition))
        if not isinstance(election, Elected):
            return None
        leader, rule = election.leader, election.rule
    new_state = next_state(context, state, leader, isr)
    return Proposal(new_state, replicas, rule, new=partition.assignment.adding, why="reassignment begins")


def _is_moving(partition: Partition) -> bool:
    return partition.assignment.is_being_reassigned and not partition.topic.is_queued_for_deletion


def _is_in_sync(partition: Partition) -> bool:
    """All target replicas are in the ISR."""
    return partition.state is not None and set(partition.assignment.target) <= set(partition.state.isr)


def complete(context: ControllerContext, partitions: Iterable[Partition], cause: str) -> Turn[None]:
    """Finish those whose target replicas are all in sync; the others wait."""
    ready = [p for p in partitions if _is_moving(p) and _is_in_sync(p)]
    if not ready:
        return
    finished = yield from change_states(context, ready, lambda p: _hand_over(context, p), cause)
    planned = {p.key: ReplicaAssignment(p.assignment.target) for p in finished}
    yield from _write_assignments(context, planned, cause)
    for partition in finished:
        removed = partition.assignment.removing
        partition.reassign(planned[partition.key])
        _take_online(context, partition)
        for broker in removed:
            context.requests.stop_replica(partition, broker, delete=True)
    context.requests.flush(cause)
    _drop_legacy(context, [partition.key for partition in finished], cause)


def _take_online(context: ControllerContext, partition: Partition) -> None:
    for broker in partition.replicas_in(ReplicaState.NEW):
        if context.is_online(partition, broker):
            partition.replica_becomes(broker, ReplicaState.ONLINE)


def _hand_over(context: ControllerContext, partition: Partition) -> Proposal | None:
    """The target replicas take over: the leader moves if it must, the ISR loses those who go."""
    state = partition.state
    if state is None or not _is_in_sync(partition):
        return None
    target = partition.assignment.target
    election = elect_for_reassigned_partition(partition.assignment, state, context.online(partition))
    if not isinstance(election, Elected):
        return None
    stays = state.leader in target and context.is_online(partition, state.leader)
    leader = state.leader if stays else election.leader
    isr = tuple(member for member in state.isr if member in target)
    handed: LeaderAndIsr = next_state(context, state, leader, isr)
    return Proposal(handed, target, election.rule, why="all replicas of the new assignment are in sync")


def _drop_legacy(context: ControllerContext, keys: Iterable[TopicPartition], cause: str) -> None:
    """The old znode shall not name these any more."""
    done = [key for key in keys if key in context.legacy_reassignments]
    for key in done:
        del context.legacy_reassignments[key]
    if done:
        context.outbox.append(KeepReassignments(dict(context.legacy_reassignments), cause))
