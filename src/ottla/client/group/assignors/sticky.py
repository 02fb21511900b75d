"""Sticky: balanced shares that differ as little as possible from those before."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.protocol import MemberData, Shares, in_order
from ottla.model.ids import TopicPartition


class StickyAssignor:
    """Members give up everything when they join, and mostly get the same back."""

    name = "sticky"
    is_cooperative = False

    def assign(self, partition_counts: Mapping[str, int], members: Sequence[MemberData]) -> Shares:
        return _Balance(partition_counts, members).shares()


class CooperativeStickyAssignor:
    """The same shares in two rounds: what moves is given up in the first and taken in the second."""

    name = "cooperative-sticky"
    is_cooperative = True

    def assign(self, partition_counts: Mapping[str, int], members: Sequence[MemberData]) -> Shares:
        shares = StickyAssignor().assign(partition_counts, members)
        holders: dict[TopicPartition, set[str]] = {}
        for member in members:
            for partition in member.owned:
                holders.setdefault(partition, set()).add(member.member_id)
        return {
            member_id: [tp for tp in share if holders.get(tp, set()) <= {member_id}]
            for member_id, share in shares.items()
        }


class _Balance:
    """Shares in the making. A move must make them more even, so that there is an end to moving."""

    def __init__(self, partition_counts: Mapping[str, int], members: Sequence[MemberData]) -> None:
        self._members = in_order(members)
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
        self._shares: dict[str, dict[TopicPartition, None]] = {m.member_id: {} for m in self._members}

    def shares(self) -> Shares:
        owners = self._owners_before()
        homeless = [tp for tp in self._partitions if tp not in owners]
        for tp in self._partitions:
            if tp in owners:
                self._shares[owners[tp]][tp] = None
        for tp in sorted(homeless, key=lambda each: (len(self._readers[each.topic]), each)):
            self._shares[self._poorest(tp)][tp] = None
        while self._move_one():
            pass
        return {member_id: sorted(share) for member_id, share in self._shares.items()}

    def _owners_before(self) -> dict[TopicPartition, str]:
        """Who owned what by the latest generation; what two claim in the same one is nobody's."""
        known = set(self._partitions)
        claims: dict[TopicPartition, tuple[int, str | None]] = {}
        for member in self._members:
            for tp in sorted(set(member.owned) & known):
                if tp.topic not in member.topics:
                    continue
                generation, _ = claims.get(tp, (None, None))
                if generation is None or member.generation > generation:
                    claims[tp] = (member.generation, member.member_id)
                elif member.generation == generation:
                    claims[tp] = (generation, None)
        return {tp: owner for tp, (_, owner) in claims.items() if owner is not None}

    def _load(self, member_id: str) -> int:
        return len(self._shares[member_id])

    def _poorest(self, tp: TopicPartition) -> str:
        return min(self._readers[tp.topic], key=lambda reader: (self._load(reader), self._place[reader]))

    def _move_one(self) -> bool:
        """Take from the richest that can give to somebody with two less."""
        for rich in sorted(self._shares, key=lambda each: (-self._load(each), self._place[each])):
            poorest_by_topic: dict[str, str] = {}
            for tp in reversed(self._shares[rich]):
                poor = poorest_by_topic.get(tp.topic)
                if poor is None:
                    poor = poorest_by_topic[tp.topic] = self._poorest(tp)
                if self._load(rich) > self._load(poor) + 1:
                    del self._shares[rich][tp]
                    self._shares[poor][tp] = None
                    return True
        return False
