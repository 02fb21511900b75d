"""Which replicas to move, and which to put first, so that brokers have even bytes and even leaders.

Bytes come first, by few moves. Leaders then change within their replicas, for free, as far as any order of
replicas can go. Where this leaves brokers apart, replicas move for it while moves are left. No move lets a
partition lie in fewer racks, and partitions that are on the move already stay as they will be.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ottla.model.ids import TopicPartition

Assignment = dict[TopicPartition, list[int]]

# Brokers whose bytes differ by less than this part of the mean are even: nobody moves data for less.
EVEN_ENOUGH = 0.1


@dataclass(frozen=True, slots=True)
class _Move:
    """A replica's change of broker. ``gain``: by how much the sum of the squared bytes falls."""

    gain: int
    partition: TopicPartition
    source: int
    target: int


def balanced(
    brokers: Sequence[int],
    before: Assignment,
    sizes: Mapping[TopicPartition, int],
    moves_max: int,
    *,
    racks: Mapping[int, str] | None = None,
    fixed: Collection[TopicPartition] = (),
) -> Assignment:
    """An assignment with at most ``moves_max`` replicas on other brokers than before.

    ``racks`` of all live brokers; without them racks do not count. Partitions in ``fixed`` are not changed.
    """
    plan = _Plan(brokers, before, sizes, moves_max, racks or {}, fixed)
    plan.even_bytes()
    plan.even_leaders()
    return plan.assignment


def bytes_on(broker: int, assignment: Assignment, sizes: Mapping[TopicPartition, int]) -> int:
    """The bytes of a broker's replicas."""
    return sum(sizes[partition] for partition, replicas in assignment.items() if broker in replicas)


def leaders_on(broker: int, assignment: Assignment) -> int:
    """How many partitions prefer a broker as leader."""
    return sum(replicas[0] == broker for replicas in assignment.values() if replicas)


class _Plan:
    """An assignment that becomes better step by step, and what it means for each live broker."""

    def __init__(
        self,
        brokers: Sequence[int],
        before: Assignment,
        sizes: Mapping[TopicPartition, int],
        moves_max: int,
        racks: Mapping[int, str],
        fixed: Collection[TopicPartition],
    ) -> None:
        self.assignment = {partition: list(replicas) for partition, replicas in before.items()}
        self._free = [partition for partition in before if partition not in fixed]
        self._racks = racks
        self._sizes = sizes
        self._moves_left = moves_max
        self._load = {broker: bytes_on(broker, before, sizes) for broker in brokers}
        self._leads = {broker: leaders_on(broker, before) for broker in brokers}

    def even_bytes(self) -> None:
        """Move, one after the other, the replica whose move brings the brokers nearest to each other."""
        while self._load and self._moves_left and not self._are_bytes_even():
            best = max(self._moves_for_bytes(), key=lambda move: move.gain, default=None)
            if best is None or best.gain <= 0:
                return
            self._move(best)

    def even_leaders(self) -> None:
        """Shift leadership to brokers that lead at least two partitions fewer; move replicas if need be."""
        while True:
            while path := self._path_to_fewer():
                for partition, leader in path:
                    self._lead(partition, leader)
            best = max(
                self._moves_for_leaders(),
                key=lambda move: (self._leads_more(move), move.gain),
                default=None,
            )
            if best is None or not self._moves_left:
                return
            self._move(best)
            self._lead(best.partition, best.target)

    def _are_bytes_even(self) -> bool:
        loads = self._load.values()
        return max(loads) - min(loads) <= EVEN_ENOUGH * sum(loads) / len(loads)

    def _moves_for_bytes(self) -> Iterator[_Move]:
        """Every replica, to the emptiest broker that may take it."""
        emptiest_first = sorted(self._load, key=lambda broker: self._load[broker])
        for partition in self._free:
            replicas = self.assignment[partition]
            for source in replicas:
                fit = (b for b in emptiest_first if b not in replicas and self._fits(replicas, source, b))
                if source in self._load and (target := next(fit, None)) is not None:
                    yield self._a_move(partition, source, target)

    def _moves_for_leaders(self) -> Iterator[_Move]:
        """Every move of a replica to a broker that leads two fewer than the partition's leader.

        None makes the fullest broker fuller, or a broker fuller than an even one may be.
        """
        if not self._load:
            return
        loads = self._load.values()
        bytes_max = max(*loads, (1 + EVEN_ENOUGH) * sum(loads) / len(loads))
        fewest_first = sorted(self._leads, key=lambda broker: self._leads[broker])
        for partition in self._free:
            replicas = self.assignment[partition]
            if not replicas or replicas[0] not in self._leads:
                continue
            for target in fewest_first:
                if self._leads[replicas[0]] - self._leads[target] < 2:
                    break
                if target not in replicas and self._load[target] + self._sizes[partition] <= bytes_max:
                    yield from self._moves_to(target, partition)

    def _moves_to(self, target: int, partition: TopicPartition) -> Iterator[_Move]:
        """Each of a partition's replicas on live brokers to the target, if it may go there."""
        replicas = self.assignment[partition]
        for source in replicas:
            if source in self._load and self._fits(replicas, source, target):
                yield self._a_move(partition, source, target)

    def _a_move(self, partition: TopicPartition, source: int, target: int) -> _Move:
        size = self._sizes[partition]
        return _Move(2 * size * (self._load[source] - self._load[target] - size), partition, source, target)

    def _fits(self, replicas: Sequence[int], source: int, target: int) -> bool:
        """Whether the replicas lie in as many racks as before; of a dead broker's rack nothing is known."""
        if not self._racks:
            return True
        others = [broker for broker in replicas if broker != source]
        now, then = (
            {self._racks.get(broker, broker) for broker in brokers}
            for brokers in (replicas, [*others, target])
        )
        return len(then) >= len(now)

    def _leads_more(self, move: _Move) -> int:
        return self._leads[self.assignment[move.partition][0]] - self._leads[move.target]

    def _path_to_fewer(self) -> list[tuple[TopicPartition, int]]:
        """Changes of leader after which one broker leads one fewer, another one more, and all else is equal.

        The first leads at least two more than the second; between them leadership is handed on.
        """
        led: dict[int, list[TopicPartition]] = {broker: [] for broker in self._leads}
        for partition in self._free:
            replicas = self.assignment[partition]
            if replicas and replicas[0] in led:
                led[replicas[0]].append(partition)
        for start in sorted(led, key=lambda broker: -self._leads[broker]):
            came: dict[int, tuple[int, TopicPartition] | None] = {start: None}
            waiting = deque([start])
            while waiting:
                broker = waiting.popleft()
                if self._leads[start] - self._leads[broker] >= 2:
                    return _walked(came, broker)
                for partition in led[broker]:
                    for other in self.assignment[partition]:
                        if other in led and other not in came:
                            came[other] = (broker, partition)
                            waiting.append(other)
        return []

    def _move(self, move: _Move) -> None:
        replicas = self.assignment[move.partition]
        if replicas[0] == move.source:
            self._leads[move.source] -= 1
            self._leads[move.target] += 1
        replicas[replicas.index(move.source)] = move.target
        self._load[move.source] -= self._sizes[move.partition]
        self._load[move.target] += self._sizes[move.partition]
        self._moves_left -= 1

    def _lead(self, partition: TopicPartition, leader: int) -> None:
        replicas = self.assignment[partition]
        self._leads[replicas[0]] -= 1
        self._leads[leader] += 1
        replicas.remove(leader)
        replicas.insert(0, leader)


def _walked(
    came: Mapping[int, tuple[int, TopicPartition] | None], end: int
) -> list[tuple[TopicPartition, int]]:
    """The way to a broker: which partition each broker on it takes over."""
    path = []
    at = end
    while (step := came[at]) is not None:
        path.append((step[1], at))
        at = step[0]
    return path
