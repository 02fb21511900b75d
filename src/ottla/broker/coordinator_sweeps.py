"""Walks over all groups of a shard, a portion at a time so that nobody waits."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.group import Group

if TYPE_CHECKING:
    from ottla.broker.node import Node

OFFSETS_PER_TURN = 2_000
"""How many offsets are looked at before others get their turn."""

GROUPS_LET_GO_PER_TURN = 500


class Sweep:
    """One walk over the groups that are there now; ``visit`` says whether to go on."""

    def __init__(self, node: "Node", shard: GroupShard, visit: Callable[[list[str]], bool]) -> None:
        self._node = node
        self._shard = shard
        self._visit = visit
        self._left = list(shard.groups)

    def go_on(self) -> None:
        portion: list[str] = []
        weight = 0
        while self._left and weight < OFFSETS_PER_TURN:
            group = self._shard.groups.get(self._left.pop())
            if group is not None:
                portion.append(group.group_id)
                weight += 1 + len(group.offsets)
        if self._visit(portion) and self._left:
            self._node.timers.after(0, self.go_on)


def let_go(node: "Node", groups: dict[str, Group]) -> None:
    """Forget the groups of a shard that is gone: to free a million offsets at once takes its time."""
    for _ in range(min(GROUPS_LET_GO_PER_TURN, len(groups))):
        groups.popitem()
    if groups:
        node.timers.after(0, lambda: let_go(node, groups))
