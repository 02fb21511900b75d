"""Sticky shares of members that all want the same topics: shares differ by one partition at most."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.claims import owners_before
from ottla.client.group.assignors.protocol import MemberData, Racks, Shares, racks_matter
from ottla.model.ids import TopicPartition


class Quotas:
    """Each member keeps its partitions up to its quota; the rest goes round-robin to members below theirs.

    A member above its quota keeps the partitions with the lowest numbers, of all topics alike. Where racks
    matter, a member keeps and gets near partitions first.
    """

    def __init__(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks
    ) -> None:
        self._members = {member.member_id: member for member in sorted(members, key=lambda m: m.member_id)}
        wanted = next(iter(self._members.values())).topics
        self._partitions = [
            TopicPartition(topic, number)
            for topic, count in sorted(partition_counts.items())
            if topic in wanted
            for number in range(count)
        ]
        self._places = {tp: racks.get(tp, frozenset()) for tp in self._partitions}
        self._racks_matter = racks_matter(members, self._places.values())
        self._owners = owners_before(partition_counts, members)
        self._shares: Shares = {member_id: [] for member_id in self._members}
        self._least, self._one_more = divmod(len(self._partitions), len(self._members))
        """How many partitions each gets, and how many members get one more."""
        self._short: list[str] = []
        """Members below the least quota."""
        self._even: list[str] = []
        """Members at the least quota, which may get one more."""

    def shares(self) -> Shares:
        self._keep()
        kept = {tp for share in self._shares.values() for tp in share}
        left = [tp for tp in self._partitions if tp not in kept]
        if self._racks_matter:
            left = self._deal_near(sorted(left, key=self._members_near))
        self._deal(left)
        return self._shares

    def _keep(self) -> None:
        had: dict[str, list[TopicPartition]] = {member_id: [] for member_id in self._members}
        for tp, owner in self._owners.items():
            if not self._racks_matter or self._is_near(owner, tp):
                had[owner].append(tp)
        for member_id, owned in had.items():
            owned.sort(key=lambda tp: (tp.partition, tp.topic))
            if len(owned) < self._least:
                self._shares[member_id] = owned
                self._short.append(member_id)
            elif len(owned) > self._least and self._one_more:
                self._shares[member_id] = owned[: self._least + 1]
                self._one_more -= 1
            else:
                self._shares[member_id] = owned[: self._least]
                self._even.append(member_id)

    def _deal_near(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Give to near members below the quota, then to near ones that may get one more; return the rest."""
        rest: list[TopicPartition] = []
        turn = 0
        for tp in partitions:
            if (at := self._next_near(tp, self._short, turn)) is not None:
                turn = self._give_to_short(tp, at)
            elif self._one_more and (at := self._next_near(tp, self._even, 0)) is not None:
                self._give_one_more(tp, at)
            else:
                rest.append(tp)
        return rest

    def _deal(self, partitions: Sequence[TopicPartition]) -> None:
        turn = 0
        for tp in partitions:
            if self._short:
                turn = self._give_to_short(tp, turn)
            else:
                self._give_one_more(tp, 0)

    def _give_to_short(self, tp: TopicPartition, at: int) -> int:
        """Give to a member below the quota; return whose turn is next."""
        member_id = self._short[at]
        self._shares[member_id].append(tp)
        if len(self._shares[member_id]) < self._least:
            at += 1
        else:
            del self._short[at]
            self._even.append(member_id)
        return at % len(self._short) if self._short else 0

    def _give_one_more(self, tp: TopicPartition, at: int) -> None:
        self._shares[self._even.pop(at)].append(tp)
        self._one_more -= 1

    def _is_near(self, member_id: str, tp: TopicPartition) -> bool:
        return self._members[member_id].is_near(self._places[tp])

    def _members_near(self, tp: TopicPartition) -> int:
        return sum(1 for member in self._members.values() if member.rack in self._places[tp])

    def _next_near(self, tp: TopicPartition, members: Sequence[str], turn: int) -> int | None:
        """The next member, from ``turn`` on, with a replica in its own rack."""
        places = self._places[tp]
        for step in range(len(members)):
            at = (turn + step) % len(members)
            if self._members[members[at]].rack in places:
                return at
        return None
