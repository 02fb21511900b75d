"""Sticky shares of members that want different topics."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.claims import owners_before
from ottla.client.group.assignors.protocol import MemberData, Racks, Shares, racks_matter
from ottla.model.ids import TopicPartition


class Balance:
    """Builds the shares. Every move makes them more even, so the moves come to an end.

    Where racks matter, members keep and get near partitions first, and moves go to near members first.
    """

    def __init__(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks
    ) -> None:
        self._members = sorted(members, key=lambda member: member.member_id)
        self._place = {member.member_id: place for place, member in enumerate(self._members)}
        self._readers = {
            topic: [member.member_id for member in self._members if topic in member.topics]
            for topic in partition_counts
        }
        self._partitions = [
            TopicPartition(topic, number)
            for topic, count in sorted(partition_counts.items())
            for number in range(count)
            if self._readers[topic]
        ]
        self._owners = owners_before(partition_counts, members)
        self._shares: dict[str, dict[TopicPartition, None]] = {m.member_id: {} for m in self._members}
        places = {tp: racks.get(tp, frozenset[str]()) for tp in self._partitions}
        self._places = places if racks_matter(members, places.values()) else None

    def shares(self) -> Shares:
        unassigned: list[TopicPartition] = []
        for tp in self._partitions:
            owner = self._owners.get(tp)
            if owner is not None and self._is_near(owner, tp):
                self._shares[owner][tp] = None
            else:
                unassigned.append(tp)
        unassigned.sort(key=lambda each: (len(self._readers[each.topic]), each))
        if self._places is not None:
            unassigned = [tp for tp in unassigned if not self._give(tp, self._near(tp))]
        for tp in unassigned:
            self._give(tp, self._readers[tp.topic])
        while self._move_one(only_near=True) or self._move_one(only_near=False):
            pass
        return {member_id: list(share) for member_id, share in self._shares.items()}

    def _is_near(self, member_id: str, tp: TopicPartition) -> bool:
        return self._places is None or self._members[self._place[member_id]].is_near(self._places[tp])

    def _near(self, tp: TopicPartition) -> list[str]:
        return [reader for reader in self._readers[tp.topic] if self._is_near(reader, tp)]

    def _load(self, member_id: str) -> int:
        return len(self._shares[member_id])

    def _give(self, tp: TopicPartition, readers: Sequence[str]) -> bool:
        """To the reader with the fewest partitions; whether there is one."""
        if readers:
            self._shares[self._poorest(readers)][tp] = None
        return bool(readers)

    def _poorest(self, readers: Sequence[str]) -> str:
        return min(readers, key=lambda reader: (self._load(reader), self._place[reader]))

    def _move_one(self, *, only_near: bool) -> bool:
        """Move a partition from the largest share to one that has at least two fewer."""
        if only_near and self._places is None:
            return False
        for rich in sorted(self._shares, key=lambda each: (-self._load(each), self._place[each])):
            poorest: dict[tuple[str, frozenset[str]], str | None] = {}
            for tp in reversed(self._shares[rich]):
                alike = (tp.topic, self._places[tp] if only_near and self._places else frozenset[str]())
                if alike not in poorest:
                    readers = self._near(tp) if only_near else self._readers[tp.topic]
                    poorest[alike] = self._poorest(readers) if readers else None
                poor = poorest[alike]
                if poor is not None and self._load(rich) > self._load(poor) + 1:
                    del self._shares[rich][tp]
                    self._shares[poor][tp] = None
                    return True
        return False
