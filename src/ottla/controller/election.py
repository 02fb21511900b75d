"""Who shall lead: five selectors, each a pure function with its rule in words.

A selector gets the partition's assignment, its current leader and ISR, and who is online. It returns the new
leader, the new ISR and the replicas that must hear of it, or why there is no new leader.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.model.ids import BrokerId
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment


class Rule(Enum):
    """By which rule a leader was chosen."""

    NEW_PARTITION = "new partition"
    OFFLINE = "offline partition"
    UNCLEAN = "offline partition, unclean"
    REASSIGNED = "reassigned partition"
    PREFERRED = "preferred replica"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    NO_OP = "no-op"
    ISR_CHANGE = "ISR change by the leader"
    REPLICA_LOST = "replica lost"


class Elected(NamedTuple):
    """The outcome of an election; a tuple because a dead broker causes thousands."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    tell: tuple[BrokerId, ...]
    leader_recovery_state: LeaderRecoveryState
    rule: Rule
    warning: str = ""


@dataclass(frozen=True, slots=True)
class NoReplicaOnline:
    """No replica may lead: the partition keeps the leader it has, or stays offline."""

    rule: Rule
    why: str


Election = Elected | NoReplicaOnline

_NONE_IN_SYNC = NoReplicaOnline(
    Rule.OFFLINE, "no in-sync replica is online and unclean election is not allowed"
)
_NONE_ONLINE = NoReplicaOnline(Rule.OFFLINE, "no replica is online")
_NONE_NEW = NoReplicaOnline(Rule.NEW_PARTITION, "no assigned replica is online")
_NONE_REASSIGNED = NoReplicaOnline(
    Rule.REASSIGNED, "no replica of the new assignment is both online and in sync"
)
_NONE_STAYS = NoReplicaOnline(
    Rule.CONTROLLED_SHUTDOWN, "no other in-sync replica is online and stays when this one leaves"
)
_PREFERRED_LEADS = NoReplicaOnline(Rule.PREFERRED, "the preferred replica leads already")
_PREFERRED_OFFLINE = NoReplicaOnline(Rule.PREFERRED, "the preferred replica is not online")
_PREFERRED_BEHIND = NoReplicaOnline(Rule.PREFERRED, "the preferred replica is not in sync")


def elect_for_new_partition(assignment: ReplicaAssignment, online: Collection[BrokerId]) -> Election:
    """The first online replica leads, and all online replicas are in sync: there is no record yet."""
    isr = tuple([replica for replica in assignment.replicas if replica in online])
    if not isr:
        return _NONE_NEW
    return Elected(isr[0], isr, isr, LeaderRecoveryState.RECOVERED, Rule.NEW_PARTITION)


def elect_for_offline_partition(
    assignment: ReplicaAssignment,
    current: LeaderAndIsr,
    online: Collection[BrokerId],
    *,
    unclean_allowed: bool = False,
) -> Election:
    """The first in-sync replica, in the order of the assignment, that is online; the ISR keeps who is online.

    When no in-sync replica is online and unclean election is allowed, the first online replica leads alone,
    and records that only the others hold are lost. Otherwise the partition stays offline.
    """
    isr = tuple([replica for replica in current.isr if replica in online])
    for replica in assignment.replicas:
        if replica in isr:
            tell = tuple([told for told in assignment.replicas if told in online])
            return Elected(replica, isr, tell, current.leader_recovery_state, Rule.OFFLINE)
    survivors = tuple([replica for replica in assignment.replicas if replica in online])
    if not survivors:
        return _NONE_ONLINE
    if not unclean_allowed:
        return _NONE_IN_SYNC
    leader = survivors[0]
    return Elected(leader, (leader,), survivors, LeaderRecoveryState.RECOVERING, Rule.UNCLEAN)


def elect_for_reassigned_partition(
    assignment: ReplicaAssignment, current: LeaderAndIsr, online: Collection[BrokerId]
) -> Election:
    """The first replica of the new assignment that is online and in sync; the ISR stays as it is."""
    target = assignment.target
    for replica in target:
        if replica in online and replica in current.isr:
            return Elected(replica, current.isr, target, current.leader_recovery_state, Rule.REASSIGNED)
    return _NONE_REASSIGNED


def elect_preferred_replica(
    assignment: ReplicaAssignment, current: LeaderAndIsr, online: Collection[BrokerId]
) -> Election:
    """The first replica of the assignment, if it is online, in sync, and does not lead already."""
    preferred = assignment.replicas[0]
    if preferred == current.leader:
        return _PREFERRED_LEADS
    if preferred not in online:
        return _PREFERRED_OFFLINE
    if preferred not in current.isr:
        return _PREFERRED_BEHIND
    return Elected(preferred, current.isr, assignment.replicas, current.leader_recovery_state, Rule.PREFERRED)


def elect_for_controlled_shutdown(
    assignment: ReplicaAssignment,
    current: LeaderAndIsr,
    registered: Collection[BrokerId],
    shutting_down: Collection[BrokerId],
) -> Election:
    """The first in-sync replica that is registered and not shutting down; the ISR loses those that are.

    Those that shut down are told too: they still serve, and shall stop leading.
    """
    for replica in assignment.replicas:
        if replica in registered and replica in current.isr and replica not in shutting_down:
            isr = tuple([member for member in current.isr if member not in shutting_down])
            tell = tuple([told for told in assignment.replicas if told in registered])
            return Elected(replica, isr, tell, current.leader_recovery_state, Rule.CONTROLLED_SHUTDOWN)
    return _NONE_STAYS


def elect_no_op(assignment: ReplicaAssignment, current: LeaderAndIsr) -> Election:
    """Elects nobody: warns, and returns the leader and the ISR as they are."""
    return Elected(
        current.leader,
        current.isr,
        assignment.replicas,
        current.leader_recovery_state,
        Rule.NO_OP,
        warning="the no-op selector was asked for a leader and returns the current one",
    )
