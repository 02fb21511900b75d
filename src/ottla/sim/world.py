"""Virtual time: a heap of things to come, one source of randomness, and the story of what happened."""

import hashlib
import heapq
from collections.abc import Callable
from random import Random

SECOND = 1_000_000
MILLISECOND = 1_000
ASK_US = 20 * MILLISECOND
"""How often an awaited condition is checked."""
WALL_START_MS = 1_700_000_000_000


class World:
    """Everything in a simulation happens through ``at``: one thing after the other, from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.now_us = 0
        self.events = 0
        self.busy_until_us = 0
        """Something is happening to the cluster until then: clients are in a hurry."""
        self.on_silence: Callable[[str, str], None] | None = None
        """Called with client and broker when a request stays unanswered."""
        self.story: list[str] = []
        self.listener: Callable[[str], None] | None = None
        self._heap: list[tuple[int, int, Callable[[], object]]] = []
        self._order = 0
        self._heading = ""
        self._trace = hashlib.blake2b(digest_size=8)

    @property
    def now_ms(self) -> int:
        return self.now_us // MILLISECOND

    def after(self, delay_us: int, run: Callable[[], object]) -> None:
        """Let this happen later; what is due at the same time happens in the order of its planning."""
        self._order += 1
        heapq.heappush(self._heap, (self.now_us + max(0, delay_us), self._order, run))

    def run_until(self, until_us: int) -> None:
        """Let time pass."""
        while self._heap and self._heap[0][0] <= until_us:
            due_us, _, run = heapq.heappop(self._heap)
            self.now_us = due_us
            self.events += 1
            run()
        self.now_us = until_us

    def run_while(self, condition: Callable[[], bool], limit_us: int) -> bool:
        """Let time pass while that holds; whether it ended within the limit. Asked now and then only."""
        until_us = self.now_us + limit_us
        while condition():
            ask_us = self.now_us + ASK_US
            while self._heap and self._heap[0][0] <= min(ask_us, until_us):
                due_us, _, run = heapq.heappop(self._heap)
                self.now_us = due_us
                self.events += 1
                run()
            self.now_us = min(ask_us, until_us)
            if self.now_us >= until_us:
                return not condition()
        return True

    def announce(self, line: str) -> None:
        """A line that is printed before the next one, if there is a next one."""
        self._heading = line

    def tell(self, line: str) -> None:
        """A line of the story; the trace's hash is made of these."""
        heading, self._heading = self._heading, ""
        if heading:
            self.tell(heading)
        if not line:
            return
        stamped = f"{self.now_us / SECOND:11.6f} {line}"
        self._trace.update(stamped.encode())
        self.story.append(stamped)
        if self.listener is not None:
            self.listener(stamped)

    def note(self, fact: bytes) -> None:
        """Something for the hash alone: two runs of a seed must agree on it too."""
        self._trace.update(fact)

    def trace_hash(self) -> str:
        return self._trace.hexdigest()

    def between(self, low: int, high: int) -> int:
        """Like ``randint``, but faster: it is called for every message."""
        count = high - low + 1
        bits = count.bit_length()
        drawn = self.chance.getrandbits(bits)
        while drawn >= count:
            drawn = self.chance.getrandbits(bits)
        return low + drawn

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability


class SimClock:
    """A broker's clocks: the monotonic one runs true, the wall clock may jump."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.wall_jump_ms = 0

    def monotonic_ms(self) -> int:
        return self._world.now_ms

    def wall_ms(self) -> int:
        return WALL_START_MS + self._world.now_ms + self.wall_jump_ms
