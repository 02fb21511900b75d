"""The input and the output of an assignor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from ottla.model.ids import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""The partitions of every member, by member id; a member without any has an empty list."""

Racks: TypeAlias = Mapping[TopicPartition, frozenset[str]]
"""The racks of each partition's replicas, as far as they are known."""

NO_GENERATION = -1
NO_RACKS: Final[Racks] = {}


@dataclass(frozen=True, slots=True)
class MemberData:
    """One member, as its subscription describes it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    """The generation in which they were assigned."""
    rack: str = ""

    def is_near(self, racks: frozenset[str]) -> bool:
        """Whether one of these racks is its own; for a member without a rack all are near."""
        return not self.rack or self.rack in racks


class Assignor(Protocol):
    """A strategy that assigns partitions to members."""

    @property
    def name(self) -> str:
        """The protocol's name in JoinGroup."""

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep their partitions while they join, and give up only those that move."""

    def assign(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks = NO_RACKS
    ) -> Shares:
        """Assign the partitions of existing topics to the members that subscribe to them."""


def in_order(members: Sequence[MemberData]) -> list[MemberData]:
    """Static members by instance id, then the others by member id: every leader sorts alike."""
    return sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id))


def racks_matter(members: Iterable[MemberData], places: Iterable[frozenset[str]]) -> bool:
    """Whether some member can be nearer to one partition than to another (KIP-881)."""
    of_members = {member.rack for member in members if member.rack}
    of_partitions = list(places)
    everywhere = frozenset[str]().union(*of_partitions)
    return bool(of_members & everywhere) and any(racks != everywhere for racks in of_partitions)
