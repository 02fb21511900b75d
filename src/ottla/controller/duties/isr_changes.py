"""ISRs that change at their leaders' request, and replicas whose log directory failed."""

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.duties import deletion, reassignment
from ottla.controller.effects import Answer, ClearNotifications, IsrsAltered, NotificationKind
from ottla.controller.election import Rule
from ottla.controller.events import (
    AlterPartitionRequested,
    IsrChange,
    IsrNotified,
    LogDirsFailed,
    ReplicasReported,
)
from ottla.controller.states.replica_states import ReplicaState
from ottla.controller.states.state_changes import Proposal, Settling, read_back, write_proposals
from ottla.controller.turns import Turn
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState


def on_alter_partition(context: ControllerContext, event: AlterPartitionRequested) -> Turn[None]:
    """Write the ISRs that may be written; tell everybody how the partitions stand, even the refused ones."""
    registration = context.brokers.get(event.broker)
    if registration is None or registration.epoch != event.broker_epoch:
        context.outbox.append(Answer(event.token, IsrsAltered(ErrorCode.STALE_BROKER_EPOCH)))
        return
    errors: dict[TopicPartition, ErrorCode] = {}
    proposals: list[tuple[Partition, Proposal]] = []
    for change in event.changes:
        verdict = judge(context, event, change)
        errors[change.partition] = ErrorCode.NONE
        if isinstance(verdict, ErrorCode):
            errors[change.partition] = verdict
        elif verdict is not None:
            proposals.append((context.partitions[change.partition], verdict))
    if proposals:
        for partition in (yield from write_proposals(context, proposals, event.cause)):
            errors[partition.key] = ErrorCode.INVALID_UPDATE_VERSION
    asked = [p for change in event.changes if (p := context.partitions.get(change.partition)) is not None]
    if asked:
        context.requests.update_metadata(asked)
    context.requests.flush(event.cause)
    context.outbox.append(Answer(event.token, IsrsAltered(ErrorCode.NONE, _rows(context, errors))))
    yield from reassignment.complete(context, asked, event.cause)


def _rows(
    context: ControllerContext, errors: dict[TopicPartition, ErrorCode]
) -> tuple[tuple[TopicPartition, ErrorCode, LeaderAndIsr | None], ...]:
    return tuple(
        (key, error, context.partitions[key].state if error is ErrorCode.NONE else None)
        for key, error in errors.items()
    )


def judge(
    context: ControllerContext, event: AlterPartitionRequested, change: IsrChange
) -> Proposal | ErrorCode | None:
    """Refuse, or propose the new ISR; None where it stands so already, as after an answer that was lost."""
    partition = context.partitions.get(change.partition)
    state = None if partition is None else partition.state
    if partition is None or state is None or partition.topic.is_queued_for_deletion:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if change.partition_epoch > state.partition_epoch or change.leader_epoch > state.leader_epoch:
        # The leader has heard from a later controller than this one.
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if event.broker != state.leader:
        return ErrorCode.INVALID_REQUEST
    if change.isr == state.isr and change.leader_recovery_state == state.leader_recovery_state:
        return None
    if change.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    error = _why_unsound(context, partition, state, change)
    if error is not ErrorCode.NONE:
        return error
    proposed = LeaderAndIsr(
        state.leader,
        state.leader_epoch,
        change.isr,
        state.partition_epoch + 1,
        context.controller_epoch,
        change.leader_recovery_state,
    )
    return Proposal(proposed, (), Rule.ISR_CHANGE)


def _why_unsound(
    context: ControllerContext, partition: Partition, state: LeaderAndIsr, change: IsrChange
) -> ErrorCode:
    """Kafka 3.9 leaves the first two checks to the leader's honesty."""
    members = set(change.isr)
    known = {*partition.assignment.replicas, *state.isr}
    if len(members) < len(change.isr) or state.leader not in members or not members <= known:
        return ErrorCode.INVALID_REQUEST
    recovering = change.leader_recovery_state is LeaderRecoveryState.RECOVERING
    if recovering and (len(members) > 1 or state.leader_recovery_state is LeaderRecoveryState.RECOVERED):
        return ErrorCode.INVALID_REQUEST
    for member, epoch in zip(change.isr, change.member_epochs, strict=True):
        if not context.is_online(partition, member):
            return ErrorCode.INELIGIBLE_REPLICA
        if epoch not in (-1, context.brokers[member].epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def on_isr_notified(context: ControllerContext, event: IsrNotified) -> Turn[None]:
    """A broker from before AlterPartition wrote states itself: believe them, and tell everybody."""
    changed = read_back(context, event.states.items())
    context.requests.update_metadata(changed)
    context.requests.flush(event.cause)
    context.outbox.append(ClearNotifications(NotificationKind.ISR_CHANGE, event.notifications, event.cause))
    yield from reassignment.complete(context, changed, event.cause)


def on_log_dirs_failed(context: ControllerContext, event: LogDirsFailed) -> None:
    """Send these brokers all their partitions again: their answers say which ones failed."""
    for broker in sorted(event.brokers):
        for partition in context.partitions_on(broker):
            if partition.state is not None and not partition.topic.is_queued_for_deletion:
                context.requests.leader_and_isr(partition, (broker,))
    context.requests.flush(event.cause)
    context.outbox.append(
        ClearNotifications(NotificationKind.LOG_DIR_EVENT, event.notifications, event.cause)
    )


def on_replicas_reported(context: ControllerContext, event: ReplicasReported) -> Turn[None]:
    """Replicas on a failed directory are lost like those of a dead broker; others are well again."""
    registration = context.brokers.get(event.broker)
    if registration is None or registration.epoch != event.broker_epoch:
        return
    failed = context.offline_replicas.get(event.broker, set())
    recovered = [key for key in event.online if key in failed]
    lost = [key for key in event.offline if key not in failed and _hosts(context, event.broker, key)]
    failed = (failed | set(lost)) - set(recovered)
    context.offline_replicas.pop(event.broker, None)
    if failed:
        context.offline_replicas[event.broker] = failed
    partitions = [context.partitions[key] for key in lost + recovered if _hosts(context, event.broker, key)]
    deleting = [p for p in partitions if p.topic.is_queued_for_deletion]
    others = [p for p in partitions if not p.topic.is_queued_for_deletion]
    for partition in others:
        online = partition.key not in failed
        partition.replica_becomes(event.broker, ReplicaState.ONLINE if online else ReplicaState.OFFLINE)
    yield from Settling(context, event.cause).run(others)
    for partition in others:
        if partition.key in failed:
            context.requests.stop_replica(partition, event.broker, delete=False)
    context.requests.update_metadata(others)
    context.requests.flush(event.cause)
    for partition in deleting:
        if partition.key in failed:
            deletion.cannot_delete(context, partition, event.broker)


def _hosts(context: ControllerContext, broker: BrokerId, key: TopicPartition) -> bool:
    partition = context.partitions.get(key)
    return partition is not None and broker in partition.assignment.replicas
