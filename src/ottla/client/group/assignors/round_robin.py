"""Round-robin: all partitions of all topics in turn, skipping members without the topic."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from ottla.client.group.assignors.protocol import NO_RACKS, MemberData, Racks, Shares, in_order
from ottla.model.ids import TopicPartition


class RoundRobinAssignor:
    """Members that want the same topics get shares that differ by one partition at most."""

    name = "roundrobin"
    is_cooperative = False

    def assign(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks = NO_RACKS
    ) -> Shares:
        shares: Shares = {member.member_id: [] for member in members}
        dealt_to = cycle(in_order(members))
        for topic in sorted(partition_counts):
            if not any(topic in member.topics for member in members):
                continue
            for number in range(partition_counts[topic]):
                member = next(each for each in dealt_to if topic in each.topics)
                shares[member.member_id].append(TopicPartition(topic, number))
        return shares
