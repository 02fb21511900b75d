"""Range: each topic's partitions in consecutive runs; the first members get one more."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from ottla.client.group.assignors.protocol import (
    NO_RACKS,
    MemberData,
    Racks,
    Shares,
    in_order,
    racks_matter,
)
from ottla.model.ids import TopicPartition


class RangeAssignor:
    """Partitions with the same number in different topics go to the same member.

    Where racks matter, partitions go to near members first, as long as shares stay even and equal topics stay
    together; the rest is cut into runs.
    """

    name = "range"
    is_cooperative = False

    def assign(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks = NO_RACKS
    ) -> Shares:
        topics = [
            _Topic(topic, count, [member for member in in_order(members) if topic in member.topics], racks)
            for topic, count in sorted(partition_counts.items())
        ]
        if any(topic.racks_matter for topic in topics):
            for alike in _side_by_side(topics):
                if len(alike) > 1:
                    _deal_together(alike)
                elif alike[0].racks_matter:
                    alike[0].cut(alike[0].is_near)
        for topic in topics:
            topic.cut(lambda member, number: True)
        return {
            member.member_id: sorted(
                TopicPartition(topic.name, number)
                for topic in topics
                for number in topic.dealt.get(member.member_id, ())
            )
            for member in members
        }


class _Topic:
    """One topic while its partitions are assigned."""

    def __init__(self, name: str, count: int, readers: list[MemberData], racks: Racks) -> None:
        self.name = name
        self.readers = readers
        self.count = count
        self.dealt: dict[str, list[int]] = {reader.member_id: [] for reader in readers}
        self._left = dict.fromkeys(range(count))
        self._each, self._more = divmod(count, len(readers)) if readers else (0, 0)
        self._places = [racks.get(TopicPartition(name, number), frozenset()) for number in range(count)]
        self.racks_matter = racks_matter(readers, self._places)

    def is_near(self, member: MemberData, number: int) -> bool:
        return member.is_near(self._places[number])

    def room(self, member: MemberData) -> int:
        """How many more partitions the member may get."""
        most = self._each + (1 if self._more > 0 else 0)
        return max(0, most - len(self.dealt[member.member_id]))

    def give(self, member: MemberData, numbers: Sequence[int]) -> None:
        share = self.dealt[member.member_id]
        share += numbers
        if len(share) > self._each:
            self._more -= 1
        for number in numbers:
            del self._left[number]

    def cut(self, may_have: Callable[[MemberData, int], bool]) -> None:
        """Give each reader in turn the first partitions that it may have, up to its room."""
        for reader in self.readers:
            wanted = (number for number in self._left if may_have(reader, number))
            if run := list(islice(wanted, self.room(reader))):
                self.give(reader, run)


def _side_by_side(topics: Sequence[_Topic]) -> list[list[_Topic]]:
    """Groups of topics with equal partition counts and equal readers."""
    alike: dict[tuple[object, ...], list[_Topic]] = {}
    for topic in topics:
        if topic.readers and topic.count:
            key = (topic.count, *(reader.member_id for reader in topic.readers))
            alike.setdefault(key, []).append(topic)
    return list(alike.values())


def _deal_together(topics: Sequence[_Topic]) -> None:
    """Give a number in all these topics to the first reader that is near each of them and has room."""
    for number in range(topics[0].count):
        for reader in topics[0].readers:
            if all(topic.room(reader) and topic.is_near(reader, number) for topic in topics):
                for topic in topics:
                    topic.give(reader, [number])
                break
