"""Controlled shutdown: a broker that wants to leave gives up what it leads and leaves the ISRs first."""

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.effects import Answer, ShutdownAnswered
from ottla.controller.election import Elected, Rule, elect_for_controlled_shutdown
from ottla.controller.events import ControlledShutdownRequested
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Proposal, change_states, from_election, next_state
from ottla.controller.turns import Turn
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId

_MAY_GO_OFFLINE = (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE)


def on_requested(context: ControllerContext, event: ControlledShutdownRequested) -> Turn[None]:
    """Move leadership away, stop its followers, and answer what it still leads. Asking again is harmless."""
    error = _why_not(context, event)
    if error is not ErrorCode.NONE:
        context.outbox.append(Answer(event.token, ShutdownAnswered(error)))
        return
    leaving = event.broker
    context.mark_shutting_down(leaving)
    affected = [
        p
        for p in context.partitions_on(leaving)
        if len(p.assignment.replicas) > 1 and p.state is not None and not p.topic.is_queued_for_deletion
    ]
    followed = [p for p in affected if p.leader != leaving]
    yield from change_states(context, affected, lambda p: _hand_over(context, p, leaving), event.cause)
    for partition in followed:
        context.requests.stop_replica(partition, leaving, delete=False)
        if partition.replica_state(leaving) in _MAY_GO_OFFLINE:
            partition.replica_becomes(leaving, ReplicaState.OFFLINE)
    context.requests.update_metadata(affected)
    context.requests.flush(event.cause)
    remaining = tuple(p.key for p in affected if p.leader == leaving)
    context.outbox.append(Answer(event.token, ShutdownAnswered(ErrorCode.NONE, remaining)))


def _why_not(context: ControllerContext, event: ControlledShutdownRequested) -> ErrorCode:
    registration = context.brokers.get(event.broker)
    if registration is None:
        is_epoch_told = event.broker_epoch != -1
        return ErrorCode.UNKNOWN_SERVER_ERROR if is_epoch_told else ErrorCode.BROKER_NOT_AVAILABLE
    if event.broker_epoch != -1 and event.broker_epoch < registration.epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def _hand_over(context: ControllerContext, partition: Partition, leaving: BrokerId) -> Proposal | None:
    state = partition.state
    assert state is not None, "a partition without leadership is not handed over"
    if state.leader == leaving:
        hosted = [b for b in partition.assignment.replicas if context.is_hosted(partition, b)]
        election = elect_for_controlled_shutdown(partition.assignment, state, hosted, context.shutting_down)
        return from_election(context, state, election) if isinstance(election, Elected) else None
    if leaving not in state.isr or len(state.isr) == 1:
        return None
    isr = tuple([member for member in state.isr if member != leaving])
    others = tuple([replica for replica in partition.assignment.replicas if replica != leaving])
    proposed = next_state(context, state, state.leader, isr)
    return Proposal(proposed, others, Rule.CONTROLLED_SHUTDOWN, why="a follower leaves")
