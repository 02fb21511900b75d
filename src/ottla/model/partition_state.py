"""Who leads a partition, who is in sync with it, and who should hold it."""

from dataclasses import dataclass
from enum import IntEnum

from ottla.model.ids import NO_LEADER, BrokerId, LeaderEpoch


class LeaderRecoveryState(IntEnum):
    """Whether the last election was unclean and the leader has not yet settled."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """A partition's ``state`` znode: the version of the znode is the partition epoch."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    partition_epoch: int
    controller_epoch: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """Which brokers hold a partition; ``adding`` and ``removing`` only while it is reassigned."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[BrokerId, ...]:
        """The replicas before the reassignment began."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """The replicas once the reassignment is done."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)
