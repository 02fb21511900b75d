"""Deadlines of a shard, on one heap."""

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple


class Due(NamedTuple):
    """One entry; the owner checks whether the deadline still stands."""

    deadline_ms: int
    order: int
    kind: int
    entity: str
    member_id: str


@dataclass(slots=True)
class Timers:
    """Entries may be stale: the owner checks them when they are due, which is cheaper than removing them."""

    _heap: list[Due] = field(default_factory=list)
    _order: int = 0

    def at(self, deadline_ms: int, kind: int, entity: str = "", member_id: str = "") -> None:
        self._order += 1
        heapq.heappush(self._heap, Due(deadline_ms, self._order, kind, entity, member_id))

    def next_deadline_ms(self) -> int | None:
        return self._heap[0].deadline_ms if self._heap else None

    def pop_due(self, now_ms: int) -> Due | None:
        """The entry longest overdue, or none."""
        if self._heap and self._heap[0].deadline_ms <= now_ms:
            return heapq.heappop(self._heap)
        return None

    def clear(self) -> None:
        self._heap.clear()
