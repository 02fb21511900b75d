"""Giving leadership back to the first replica of each assignment: by request, by the old znode, by itself."""

from collections.abc import Iterable

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.effects import Answer, ClearPreferredElection, LeadersElected, Refuse
from ottla.controller.election import Elected, NoReplicaOnline, elect_preferred_replica
from ottla.controller.events import (
    ElectionType,
    ElectLeadersRequested,
    PreferredElectionWritten,
    RebalanceDue,
    UncleanElectionEnabled,
)
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.states.state_changes import Proposal, Settling, change_states, from_election
from ottla.controller.turns import Turn
from ottla.model.errors import GRANTED, ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicPartition


def on_requested(context: ControllerContext, event: ElectLeadersRequested) -> Turn[None]:
    """ElectLeaders: preferred, or unclean where a partition has no leader."""
    results: dict[TopicPartition, Refusal] = {}
    chosen: list[Partition] = []
    keys = list(context.partitions) if event.partitions is None else event.partitions
    for key in keys:
        partition = context.partitions.get(key)
        refusal = _why_not(context, partition, event.election)
        if refusal is not None:
            results[key] = refusal
        elif partition is not None:
            chosen.append(partition)
    if event.election is ElectionType.PREFERRED:
        results |= yield from elect(context, chosen, event.cause)
    else:
        results |= yield from _elect_uncleanly(context, chosen, event.cause)
    if event.partitions is None:
        results = {k: r for k, r in results.items() if r.error is not ErrorCode.ELECTION_NOT_NEEDED}
    context.outbox.append(Answer(event.token, LeadersElected(results)))


def _why_not(
    context: ControllerContext, partition: Partition | None, election: ElectionType
) -> Refusal | None:
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if partition.topic.is_queued_for_deletion:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted.")
    if election is ElectionType.PREFERRED:
        needed = partition.leader != partition.assignment.replicas[0]
    else:
        needed = not context.is_leader_serving(partition)
    if needed:
        return None
    return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def elect(
    context: ControllerContext, partitions: Iterable[Partition], cause: str
) -> Turn[dict[TopicPartition, Refusal]]:
    """Hold the preferred election on these; a partition whose election fails keeps its leader."""
    results: dict[TopicPartition, Refusal] = {}

    def decide(partition: Partition) -> Proposal | None:
        if partition.state is None:
            why = "the partition has no leader yet"
            results[partition.key] = Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, why)
            return None
        election = elect_preferred_replica(partition.assignment, partition.state, context.online(partition))
        if isinstance(election, Elected):
            return from_election(context, partition.state, election)
        leads = partition.state.leader == partition.assignment.replicas[0]
        results[partition.key] = GRANTED if leads else _not_available(partition, election)
        return None

    written = yield from change_states(context, partitions, decide, cause)
    results |= {partition.key: GRANTED for partition in written}
    context.requests.flush(cause)
    return results


def _not_available(partition: Partition, election: NoReplicaOnline) -> Refusal:
    why = f"Failed to elect leader for partition {partition.key}: {election.why}"
    return Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, why)


def _elect_uncleanly(
    context: ControllerContext, partitions: list[Partition], cause: str
) -> Turn[dict[TopicPartition, Refusal]]:
    yield from Settling(context, cause).run(partitions, force_unclean=True)
    context.requests.flush(cause)
    return {
        partition.key: GRANTED
        if context.is_leader_serving(partition)
        else Refusal(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"Failed to elect leader for partition {partition.key}: no replica is online",
        )
        for partition in partitions
    }


def on_written(context: ControllerContext, event: PreferredElectionWritten) -> Turn[None]:
    """The old tool wrote ``/admin/preferred_replica_election``."""
    yield from take_legacy(context, event.partitions, event.cause)


def take_legacy(context: ControllerContext, keys: tuple[TopicPartition, ...], cause: str) -> Turn[None]:
    """Elect what the old znode names, then remove it; what fails is only reported."""
    chosen = []
    for key in keys:
        partition = context.partitions.get(key)
        if partition is None or partition.topic.is_queued_for_deletion:
            context.outbox.append(Refuse(f"preferred election of {key}", "there is no such partition"))
        else:
            chosen.append(partition)
    results = yield from elect(context, chosen, cause)
    for key, result in results.items():
        if result.error is not ErrorCode.NONE:
            context.outbox.append(Refuse(f"preferred election of {key}", result.why or result.error.name))
    context.outbox.append(ClearPreferredElection(cause))


def on_rebalance_due(context: ControllerContext, event: RebalanceDue) -> Turn[None]:
    """Give back to each broker what it should lead, where more than the percentage is led by others."""
    preferring: dict[BrokerId, list[Partition]] = {}
    for partition in context.partitions.values():
        if not partition.topic.is_queued_for_deletion:
            preferring.setdefault(partition.assignment.replicas[0], []).append(partition)
    chosen: list[Partition] = []
    for broker, partitions in preferring.items():
        astray = [p for p in partitions if p.leader != broker]
        if len(astray) * 100 > event.imbalance_per_broker_percentage * len(partitions):
            chosen += [p for p in astray if _may_return(context, p, broker)]
    yield from elect(context, chosen, event.cause)


def _may_return(context: ControllerContext, partition: Partition, broker: BrokerId) -> bool:
    return (
        partition.state is not None and broker in partition.state.isr and context.is_online(partition, broker)
    )


def on_unclean_enabled(context: ControllerContext, event: UncleanElectionEnabled) -> Turn[None]:
    """Partitions that waited for an in-sync replica need not wait any more, if their topic says so."""
    if event.topic is None:
        topics = list(context.topics.values())
    else:
        topic = context.topics.get(event.topic)
        topics = [] if topic is None else [topic]
    waiting = [
        partition
        for each in topics
        if not each.is_queued_for_deletion
        for partition in each.partitions.values()
        if partition.status is not PartitionState.ONLINE
    ]
    yield from Settling(context, event.cause).run(waiting)
    context.requests.flush(event.cause)
