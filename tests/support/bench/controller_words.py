"""The words of a controller's scenario: ids, and effects as lines."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.controller.effects import (
    Answer,
    ClearDeletionMarkers,
    ClearNotifications,
    ClearPreferredElection,
    Connect,
    Disconnect,
    Effect,
    InOffice,
    IsrsAltered,
    KeepReassignments,
    LeadersElected,
    PartitionsAdded,
    ReassignmentsTaken,
    ReassignmentsUnderWay,
    Refuse,
    Resign,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    ShutdownAnswered,
    TopicsCreated,
)
from ottla.model.cluster import BrokerRegistration, Endpoint
from ottla.model.errors import GRANTED, ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment


def broker(number: int, epoch: int, port: int = 9092) -> BrokerRegistration:
    return BrokerRegistration(BrokerId(number), epoch, (Endpoint("PLAINTEXT", f"host{number}", port),))


def key_of(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def ids(text: str) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(part)) for part in text.split(",") if part)


def joined(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in numbers)


def described(state: LeaderAndIsr | None) -> str:
    if state is None:
        return "nothing"
    mark = " recovering" if state.leader_recovery_state else ""
    return f"leader={state.leader} epoch={state.leader_epoch} isr={joined(state.isr)}{mark}"


def assignment_text(assignment: ReplicaAssignment) -> str:
    adding = f"+{joined(assignment.adding)}" if assignment.adding else ""
    removing = f"-{joined(assignment.removing)}" if assignment.removing else ""
    return joined(assignment.replicas) + (f"({adding}{removing})" if adding or removing else "")


def tell(effect: Effect) -> list[str]:
    """An effect in a line; orders are told by who carries them out."""
    match effect:
        case SendLeaderAndIsr():
            entries = " ".join(f"{e.partition}{'[new]' if e.is_new else ''}" for e in effect.entries)
            return [f"to {effect.broker} LeaderAndIsr {entries}"]
        case SendUpdateMetadata():
            entries = " ".join(_metadata_text(e.partition, e.state, e.offline) for e in effect.entries)
            targets = joined(target for target, _ in effect.targets)
            live = joined(registration.broker for registration in effect.brokers)
            return [f"to {targets} UpdateMetadata brokers={live} {entries}".rstrip()]
        case SendStopReplica():
            entries = " ".join(
                f"{e.partition}@{e.leader_epoch}{'[delete]' if e.delete else ''}" for e in effect.entries
            )
            return [f"to {effect.broker} StopReplica {entries}"]
        case Answer():
            return _answer_lines(effect)
        case Connect():
            return [f"connect {effect.broker.broker}"]
        case Disconnect():
            return [f"disconnect {effect.broker}"]
        case Refuse():
            return [f"refused {effect.what}: {effect.why}"]
        case Resign():
            return [f"resign: {effect.reason}"]
        case InOffice():
            return ["in office"]
        case KeepReassignments():
            left = " ".join(f"{key}={joined(replicas)}" for key, replicas in effect.targets.items())
            return [f"zk /admin/reassign_partitions {left or 'removed'}"]
        case ClearPreferredElection():
            return ["zk /admin/preferred_replica_election removed"]
        case ClearNotifications():
            return [f"zk {effect.kind.value} notifications removed"]
        case ClearDeletionMarkers():
            return [f"zk deletion markers removed: {' '.join(effect.topics)}"]
    return []


def _metadata_text(key: TopicPartition, state: LeaderAndIsr, offline: tuple[BrokerId, ...]) -> str:
    if state.leader == -2:
        return f"{key}[gone]"
    return f"{key}" + (f"[offline {joined(offline)}]" if offline else "")


def _answer_lines(answer: Answer) -> list[str]:
    match answer.result:
        case TopicsCreated(made):
            rows = [
                f"{name}: {_refusal(each if isinstance(each, Refusal) else GRANTED)}"
                for name, each in made.items()
            ]
        case PartitionsAdded(added):
            rows = [f"{name}: {_refusal(each)}" for name, each in added.items()]
        case LeadersElected(results) | ReassignmentsTaken(results):
            rows = [f"{key}: {refusal.error.name}" for key, refusal in results.items()]
        case ReassignmentsUnderWay(assignments):
            rows = [f"{key} {assignment_text(a)}" for key, a in assignments.items()]
        case ShutdownAnswered(error, remaining):
            left = " ".join(str(key) for key in remaining)
            rows = [f"{error.name} remaining={left or 'none'}"]
        case IsrsAltered(error, results_of):
            rows = [f"{key}: {code.name}" for key, code, _ in results_of]
            if error is not ErrorCode.NONE:
                rows = [error.name]
    return [f"answer {row}" for row in rows] or ["answer nothing"]


def _refusal(refusal: Refusal) -> str:
    return refusal.error.name + (f" ({refusal.why})" if refusal.why else "")
