"""Sticky: balanced shares that differ as little as possible from the previous ones."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.balance import Balance
from ottla.client.group.assignors.claims import owners_before
from ottla.client.group.assignors.protocol import NO_RACKS, MemberData, Racks, Shares
from ottla.client.group.assignors.quotas import Quotas
from ottla.model.ids import TopicPartition


class StickyAssignor:
    """Eager: members give up everything when they join, and mostly get the same back."""

    name = "sticky"
    is_cooperative = False

    def assign(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks = NO_RACKS
    ) -> Shares:
        want_the_same = len({member.topics for member in members}) == 1
        making = (Quotas if want_the_same else Balance)(partition_counts, members, racks)
        return {member_id: sorted(share) for member_id, share in making.shares().items()}


class CooperativeStickyAssignor:
    """The same shares in two rebalances: the first revokes partitions that move, the second assigns them."""

    name = "cooperative-sticky"
    is_cooperative = True

    def assign(
        self, partition_counts: Mapping[str, int], members: Sequence[MemberData], racks: Racks = NO_RACKS
    ) -> Shares:
        shares = StickyAssignor().assign(partition_counts, members, racks)
        owners = owners_before(partition_counts, members)
        holders: dict[TopicPartition, set[str]] = {}
        for member in members:
            for partition in member.owned:
                holders.setdefault(partition, set()).add(member.member_id)
        return {
            member_id: [
                tp for tp in share if owners.get(tp) == member_id or holders.get(tp, set()) <= {member_id}
            ]
            for member_id, share in shares.items()
        }
