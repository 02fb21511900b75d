"""A partition's states in the controller's memory, and which may follow which."""

from enum import Enum


class PartitionState(Enum):
    """Where a partition stands."""

    __hash__ = object.__hash__  # its members are single objects; Enum's own hash is slow

    NON_EXISTENT = "NonExistentPartition"
    """It was never created, or was created and then deleted."""
    NEW = "NewPartition"
    """It has an assignment, but no leader yet."""
    ONLINE = "OnlinePartition"
    """It has a leader, and the leader is online."""
    OFFLINE = "OfflinePartition"
    """It had a leader, and the leader is gone."""


MAY_FOLLOW: dict[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
"""The states from which each state may be reached."""


def may_become(current: PartitionState, target: PartitionState) -> bool:
    """Whether the step is one of Kafka's partition state machine."""
    return current in MAY_FOLLOW[target]
