"""What an assignor is given and what it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ottla.model.ids import TopicPartition

Shares: TypeAlias = dict[str, list[TopicPartition]]
"""The partitions of every member, by member id; a member without any has an empty list."""

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class MemberData:
    """One member, as it told the leader of itself."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    """The generation in which it came to own them."""


class Assignor(Protocol):
    """A way to share partitions out."""

    @property
    def name(self) -> str:
        """The protocol's name in JoinGroup."""

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep what they have while they join, and give up only what moves."""

    def assign(self, partition_counts: Mapping[str, int], members: Sequence[MemberData]) -> Shares:
        """Share out the partitions of topics that exist among the members that want them."""


def in_order(members: Sequence[MemberData]) -> list[MemberData]:
    """Static members first, by instance id, then the others by member id: the same for every leader."""
    return sorted(members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id))
