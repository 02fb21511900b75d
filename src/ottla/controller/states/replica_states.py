"""A replica's states in the controller's memory, and which may follow which."""

from enum import Enum


class ReplicaState(Enum):
    """Where one replica of a partition stands."""

    __hash__ = object.__hash__  # its members are single objects; Enum's own hash is slow

    NON_EXISTENT = "NonExistentReplica"
    """It was deleted, or never was."""
    NEW = "NewReplica"
    """It was just assigned; its broker may only follow."""
    ONLINE = "OnlineReplica"
    """It is part of the assignment and its broker and directory are alive."""
    OFFLINE = "OfflineReplica"
    """Its broker or directory is gone, or it was told to stop."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    """It was told to delete its log."""
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    """It said that its log is deleted."""
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It cannot delete its log now: it is offline, or it refused."""


MAY_FOLLOW: dict[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.OFFLINE: frozenset(
        {
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
"""The states from which each state may be reached."""


def may_become(current: ReplicaState, target: ReplicaState) -> bool:
    """Whether the step is one of Kafka's replica state machine."""
    return current in MAY_FOLLOW[target]
