"""Decide, write, and only then believe: how partition states change.

Many partitions are decided at once and written by one effect. Those that somebody else had changed meanwhile
are decided again, from what stands there now. Memory and requests change only with what was written.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeAlias

from ottla.controller.context import ControllerContext, Partition
from ottla.controller.effects import Decision, ReadUncleanTopics, Refuse, WriteStates
from ottla.controller.election import (
    Elected,
    Election,
    NoReplicaOnline,
    Rule,
    elect_for_new_partition,
    elect_for_offline_partition,
)
from ottla.controller.events import StatesWritten, UncleanTopicsRead
from ottla.controller.states.partition_states import PartitionState
from ottla.controller.turns import MustResign, Turn, awaited
from ottla.model.ids import NO_LEADER, BrokerId, LeaderEpoch, TopicPartition
from ottla.model.partition_state import LeaderAndIsr

ROUNDS_MAX = 10
"""How often a conflict is decided again before the partition is left for the next event."""


class Proposal(NamedTuple):
    """A state to be written, whom to tell once it is, and why."""

    state: LeaderAndIsr
    tell: tuple[BrokerId, ...]
    rule: Rule
    new: tuple[BrokerId, ...] = ()
    why: str = ""


Decide: TypeAlias = Callable[[Partition], Proposal | None]


def change_states(
    context: ControllerContext, partitions: Iterable[Partition], decide: Decide, cause: str
) -> Turn[list[Partition]]:
    """Write what ``decide`` proposes, again for conflicts; returns the partitions that were written."""
    written: list[Partition] = []
    pending = list(partitions)
    for _ in range(ROUNDS_MAX):
        proposals = [(p, proposal) for p in pending if (proposal := decide(p)) is not None]
        if not proposals:
            return written
        pending = yield from write_proposals(context, proposals, cause)
        conflicted = {p.key for p in pending}
        written += [p for p, _ in proposals if p.key not in conflicted]
    give_up(context, pending)
    return written


def write_proposals(
    context: ControllerContext, proposals: list[tuple[Partition, Proposal]], cause: str
) -> Turn[list[Partition]]:
    """One round: write, believe what was written, and return those whose state was another."""
    states = {p.key: proposal.state for p, proposal in proposals}
    outcome = yield from awaited(WriteStates(states, cause), StatesWritten)
    conflicts = outcome.conflicts
    again: list[Partition] = []
    live = context.live
    for partition, proposal in proposals:
        if conflicts and partition.key in conflicts:
            if _take_fresh(context, partition, conflicts[partition.key]):
                again.append(partition)
            continue
        before, partition.state = partition.state, proposal.state
        _take_status(context, partition)
        context.requests.leader_and_isr(partition, proposal.tell, proposal.new)
        replicas = partition.assignment.replicas
        context.record(
            Decision(partition.key, proposal.rule, before, proposal.state, replicas, live, proposal.why)
        )
    return again


def give_up(context: ControllerContext, partitions: list[Partition]) -> None:
    """Leave partitions that somebody else keeps changing; the next event tries again."""
    for partition in partitions:
        context.outbox.append(
            Refuse(f"partition {partition.key}", "its state was changed by others again and again")
        )


def _take_fresh(context: ControllerContext, partition: Partition, fresh: LeaderAndIsr | None) -> bool:
    if fresh is None:
        context.outbox.append(
            Refuse(f"partition {partition.key}", "its state in ZooKeeper is missing or cannot be read")
        )
        return False
    if fresh.controller_epoch > context.controller_epoch:
        raise MustResign(f"controller epoch {fresh.controller_epoch} wrote the state of {partition.key}")
    partition.state = fresh
    _take_status(context, partition)
    context.requests.leader_and_isr(partition, partition.assignment.replicas)
    return True


def _take_status(context: ControllerContext, partition: Partition) -> None:
    if partition.topic.is_queued_for_deletion:
        return
    serving = context.is_leader_serving(partition)
    partition.become(PartitionState.ONLINE if serving else PartitionState.OFFLINE)


def next_state(
    context: ControllerContext, current: LeaderAndIsr, leader: BrokerId, isr: tuple[BrokerId, ...]
) -> LeaderAndIsr:
    """The state after this one: leader epoch and partition epoch one higher."""
    return LeaderAndIsr(
        leader,
        LeaderEpoch(current.leader_epoch + 1),
        isr,
        current.partition_epoch + 1,
        context.controller_epoch,
        current.leader_recovery_state,
    )


def from_election(context: ControllerContext, current: LeaderAndIsr, elected: Elected) -> Proposal:
    """An elected leader as a proposal."""
    state = LeaderAndIsr(
        elected.leader,
        LeaderEpoch(current.leader_epoch + 1),
        elected.isr,
        current.partition_epoch + 1,
        context.controller_epoch,
        elected.leader_recovery_state,
    )
    return Proposal(state, elected.tell, elected.rule)


class Settling:
    """Brings partitions to the best state their online replicas allow, in one write each.

    A new partition gets its first leader. A partition whose leader is gone gets another; one that has no
    candidate keeps no leader. Lost replicas leave the ISR, but the ISR is never emptied: when all are lost
    it stays as it is, because each of them holds every committed record.

    Kafka writes twice where a lost replica led (leader -1, then the new leader); once is enough.
    """

    def __init__(
        self, context: ControllerContext, cause: str, *, bounced: frozenset[BrokerId] = frozenset()
    ) -> None:
        self._context = context
        self._cause = cause
        self._bounced = bounced
        """Brokers that are back in a new life: they lose what they led, if anybody else can take it."""
        self._unclean: dict[str, bool] = {}

    def run(self, partitions: Iterable[Partition], *, force_unclean: bool = False) -> Turn[list[Partition]]:
        """Settle these; returns the partitions that were written."""
        written: list[Partition] = []
        pending = list(partitions)
        for _ in range(ROUNDS_MAX):
            proposals = yield from self._propose_all(pending, force_unclean)
            if not proposals:
                return written
            pending = yield from write_proposals(self._context, proposals, self._cause)
            conflicted = {p.key for p in pending}
            written += [p for p, _ in proposals if p.key not in conflicted]
        give_up(self._context, pending)
        return written

    def _propose_all(
        self, partitions: list[Partition], force_unclean: bool
    ) -> Turn[list[tuple[Partition, Proposal]]]:
        proposals = []
        doubtful = []
        for partition in partitions:
            election = self._elect(partition, force_unclean or self._unclean.get(partition.topic.name, False))
            if election is not None and self._is_doubtful(partition, election):
                doubtful.append(partition)
            elif (proposal := self._propose(partition, election)) is not None:
                proposals.append((partition, proposal))
        if doubtful:
            topics = frozenset(partition.topic.name for partition in doubtful)
            read = yield from awaited(ReadUncleanTopics(topics, self._cause), UncleanTopicsRead)
            self._unclean.update({topic: topic in read.allowed for topic in topics})
            proposals += yield from self._propose_all(doubtful, force_unclean)
        return proposals

    def _is_doubtful(self, partition: Partition, election: Election) -> bool:
        """Only the topic's setting can tell whether an unclean election may be held."""
        if isinstance(election, Elected) or partition.state is None or partition.topic.name in self._unclean:
            return False
        online = self._context.online(partition)
        return any(replica in online for replica in partition.assignment.replicas)

    def _elect(self, partition: Partition, unclean_allowed: bool) -> Election | None:
        """None: the leader is there and stays."""
        state = partition.state
        online = self._context.online(partition)
        if state is None:
            return elect_for_new_partition(partition.assignment, online)
        if state.leader not in self._bounced and self._context.is_leader_serving(partition):
            return None
        if self._bounced:
            steady = [broker for broker in online if broker not in self._bounced]
            election = elect_for_offline_partition(partition.assignment, state, steady)
            if isinstance(election, Elected):
                return election
        return elect_for_offline_partition(
            partition.assignment, state, online, unclean_allowed=unclean_allowed
        )

    def _propose(self, partition: Partition, election: Election | None) -> Proposal | None:
        state = partition.state
        if isinstance(election, Elected):
            if state is None:
                first = LeaderAndIsr(
                    election.leader, LeaderEpoch(0), election.isr, 0, self._context.controller_epoch
                )
                return Proposal(first, election.tell, election.rule, new=election.tell)
            return from_election(self._context, state, election)
        if state is None:
            assert isinstance(election, NoReplicaOnline), "a new partition has no leader that could stay"
            self._record_refusal(partition, election)
            return None
        hosted: Collection[BrokerId] = self._context.hosted(partition)
        if self._bounced:
            hosted = [broker for broker in hosted if broker not in self._bounced]
        isr = tuple([member for member in state.isr if member in hosted]) or state.isr
        leader = state.leader if election is None else NO_LEADER
        if leader == state.leader and isr == state.isr:
            return None
        why = "" if election is None else election.why
        others = tuple([replica for replica in partition.assignment.replicas if replica in hosted])
        return Proposal(next_state(self._context, state, leader, isr), others, Rule.REPLICA_LOST, (), why)

    def _record_refusal(self, partition: Partition, election: NoReplicaOnline) -> None:
        replicas, live = partition.assignment.replicas, self._context.live
        self._context.record(
            Decision(partition.key, election.rule, partition.state, None, replicas, live, election.why)
        )


def read_back(
    context: ControllerContext, states: Iterable[tuple[TopicPartition, LeaderAndIsr]]
) -> list[Partition]:
    """Believe states that others wrote; returns the known partitions whose state is newer than believed."""
    changed = []
    for key, fresh in states:
        partition = context.partitions.get(key)
        if partition is None or partition.topic.is_queued_for_deletion:
            continue
        if partition.state is None or fresh.partition_epoch > partition.state.partition_epoch:
            partition.state = fresh
            _take_status(context, partition)
            changed.append(partition)
    return changed
