"""Kafka's assignors, pure and by name: a group's leader uses one to assign partitions to members."""

from ottla.client.group.assignors.protocol import Assignor, MemberData, Shares
from ottla.client.group.assignors.range import RangeAssignor
from ottla.client.group.assignors.round_robin import RoundRobinAssignor
from ottla.client.group.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}

__all__ = ["ASSIGNORS", "Assignor", "MemberData", "Shares"]
