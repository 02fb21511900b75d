"""A group: what the log stores of it, and its live rebalance."""

from collections import Counter
from dataclasses import dataclass, field

from ottla.coordinator.group.members import Member, Protocol
from ottla.coordinator.group.states import LEGAL_PREVIOUS, GroupState
from ottla.coordinator.group.stored.committed import CommittedOffsets

CONSUMER_PROTOCOL_TYPE = "consumer"


@dataclass(slots=True)
class StoredGroup:
    """What the log stores of a group. Only ``apply`` changes it."""

    metadata: bytes | None = None
    """The value of the last metadata record: generation, protocol, leader, members with their assignments."""
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)


@dataclass(slots=True)
class Group:
    """All but ``stored`` is live: it may be ahead of the log, and a load makes it from ``stored``."""

    group_id: str
    stored: StoredGroup = field(default_factory=StoredGroup)
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_members: dict[str, int] = field(default_factory=dict)
    """Ids handed out with MEMBER_ID_REQUIRED and not yet used, with their deadlines."""
    pending_syncs: set[str] = field(default_factory=set)
    sync_deadline_ms: int | None = None
    join_deadline_ms: int | None = None
    initial_delay_left_ms: int | None = None
    """During the first rebalance of an empty group: by how much its delay may still be extended."""
    new_member_added: bool = False
    subscribed_topics: frozenset[str] | None = None

    @property
    def offsets(self) -> CommittedOffsets:
        return self.stored.offsets

    def move_to(self, state: GroupState, wall_ms: int) -> None:
        """Change the state; the table must allow the move."""
        assert self.state in LEGAL_PREVIOUS[state], f"group {self.group_id}: {self.state} -> {state}"
        self.state = state
        self.state_timestamp_ms = wall_ms

    @property
    def may_rebalance(self) -> bool:
        return self.state in LEGAL_PREVIOUS[GroupState.PREPARING_REBALANCE]

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def may_read(self, topic: str) -> bool:
        """Whether a member is subscribed to the topic; true if the subscriptions are unknown."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance time-out of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def joined(self) -> int:
        return sum(1 for member in self.members.values() if member.awaiting_join is not None)

    @property
    def everyone_joined(self) -> bool:
        return not self.pending_members and self.joined == len(self.members)

    def add(self, member: Member) -> None:
        """Add a member; the first one decides the protocol type and becomes leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member; if it led, the member that joined first leads."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_syncs.discard(member_id)

    def rename_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """A static member came back with a new id: it keeps its position, assignment and leadership."""
        member = self.members[old_id]
        self.members = {
            (new_id if member_id == old_id else member_id): known for member_id, known in self.members.items()
        }
        member.member_id = new_id
        self.static_members[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def common_protocols(self) -> frozenset[str]:
        """The protocols that every member supports."""
        counts = Counter(
            name for member in self.members.values() for name in {p.name for p in member.protocols}
        )
        return frozenset(name for name, count in counts.items() if count == len(self.members))

    def accepts_protocols(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """An empty group accepts any protocol; others need the same type and one that all members support."""
        if not protocol_type or not protocols:
            return False
        if self.state is GroupState.EMPTY:
            return True
        if self.protocol_type != protocol_type:
            return False
        common = self.common_protocols()
        return not self.members or any(offer.name in common for offer in protocols)

    def select_protocol(self) -> str:
        """The common protocol with most votes; in a tie the one that an earlier member voted for."""
        candidates = self.common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """If the leader did not rejoin, the first member that did becomes leader; false if none did."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is not None and leader.awaiting_join is not None:
            return True
        successor = next((m.member_id for m in self.members.values() if m.awaiting_join is not None), None)
        if successor is None:
            return False
        self.leader = successor
        return True
