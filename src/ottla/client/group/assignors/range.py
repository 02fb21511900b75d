"""Range: each topic's partitions in consecutive runs, the first members getting one more."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.protocol import MemberData, Shares, in_order
from ottla.model.ids import TopicPartition


class RangeAssignor:
    """Partitions with the same number in different topics go to the same member."""

    name = "range"
    is_cooperative = False

    def assign(self, partition_counts: Mapping[str, int], members: Sequence[MemberData]) -> Shares:
        shares: Shares = {member.member_id: [] for member in members}
        for topic in sorted(partition_counts):
            readers = [member for member in in_order(members) if topic in member.topics]
            if not readers:
                continue
            each, more = divmod(partition_counts[topic], len(readers))
            first = 0
            for place, member in enumerate(readers):
                end = first + each + (1 if place < more else 0)
                shares[member.member_id] += [TopicPartition(topic, number) for number in range(first, end)]
                first = end
        return shares
