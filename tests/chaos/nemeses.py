"""What is done to a cluster: each fault begins, lasts and is undone; the seed chooses whom it hits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from chaos.cluster import ChaosCluster
from chaos.copying import Copiers
from chaos.crew import Worker
from chaos.nodes import Broker
from chaos.probe import Probe, ask_once
from chaos.workers.churn import CHURNED
from support.running.waiting import wait_until

Step = Callable[[], None]
WHOLE_SECONDS_MAX = 15.0
HOLD_SECONDS_MAX = 9.0
"""Longer than a session, so that some that are frozen or cut off find out that they were replaced."""


def _nothing() -> None:
    """For faults that heal by themselves."""


@dataclass(slots=True)
class Fault:
    """One fault: its name for the count, its words for the reader, and what to do."""

    kind: str
    text: str
    inject: Step
    heal: Step = _nothing
    hold_s: float = 0.0
    after_s: float = 0.0
    """How long after the beginning of its round it begins."""


@dataclass(slots=True)
class Nemesis:
    """Makes faults for one cluster. ``victims`` may be ended, all may be paused and cut off."""

    cluster: ChaosCluster
    probe: Probe
    random: Random
    members: list[Worker]
    victims: list[int]
    copiers: Copiers | None = None
    _taken: set[int] = field(default_factory=set)

    def begin_round(self) -> None:
        """Forget which brokers the last round hurt."""
        self._taken.clear()

    def make(self, kind: str) -> Fault | None:
        """A fault of this kind, or None where nobody is left to hurt."""
        return self.kinds()[kind]()

    def kinds(self) -> dict[str, Callable[[], Fault | None]]:
        """All faults that are possible here, by name."""
        found: dict[str, Callable[[], Fault | None]] = {
            "kill -9": self._kill,
            "kill -9 of two": self._kill_two,
            "kill -9 of all brokers": self._kill_all,
            "kill -9 over and over": self._kill_repeatedly,
            "freeze": self._freeze,
            "controlled restart": self._restart,
            "rolling restart": self._roll,
            "ZooKeeper member killed": self._kill_zookeeper,
            "ZooKeeper member frozen": self._freeze_zookeeper,
            "ZooKeeper ensemble killed": self._kill_ensemble,
            "ZooKeeper ensemble frozen": self._freeze_ensemble,
            "group members frozen": self._freeze_members,
            "disk lost": self._lose_disk,
        }
        if self.cluster.network.can_cut:
            found |= {
                "link cut": self._cut_link,
                "link cut one way": self._cut_one_way,
                "broker cut off": self._isolate,
                "cluster split": self._split,
                "cut from ZooKeeper": self._cut_from_zookeeper,
                "disk full": self._fill_disk,
            }
        if self.copiers is not None:
            found |= {kind: partial(self._hurt_copier, kind) for kind in self.copiers.kinds()}
        if not self.victims:
            return {kind: make for kind, make in found.items() if kind in HARMLESS}
        return found

    # ---- processes

    def _kill(self) -> Fault | None:
        broker = self._one(self.victims)
        if broker is None:
            return None
        text = f"kill -9 of {self._described(broker)}"
        return Fault("kill -9", text, broker.kill, broker.launch, self.random.uniform(0, 4))

    def _kill_two(self) -> Fault | None:
        first, second = self._one(self.victims), self._one(self.victims)
        if first is None or second is None:
            return None

        def kill() -> None:
            first.kill()
            second.kill()

        def launch() -> None:
            second.launch()
            first.launch()

        text = f"kill -9 of {self._described(first)} and {self._described(second)}"
        return Fault("kill -9 of two", text, kill, launch, self.random.uniform(0, 3))

    def _kill_all(self) -> Fault:
        order = [self.cluster.broker(number) for number in self.victims]
        self.random.shuffle(order)

        def kill() -> None:
            for broker in order:
                broker.kill()

        def launch() -> None:
            for broker in order:
                broker.launch()

        text = f"kill -9 of all, started again as {', '.join(str(b.number) for b in order)}"
        return Fault("kill -9 of all brokers", text, kill, launch, self.random.uniform(0, 4))

    def _kill_repeatedly(self) -> Fault | None:
        broker = self._one(self.victims)
        if broker is None:
            return None
        times = self.random.randint(3, 5)

        def kill() -> None:
            for _ in range(times):
                broker.kill()
                broker.launch()
                time.sleep(0.8)

        text = f"kill -9 of {self._described(broker)}, {times} times in a row"
        return Fault("kill -9 over and over", text, kill)

    def _freeze(self) -> Fault | None:
        broker = self._one([broker.number for broker in self.cluster.brokers])
        if broker is None:
            return None
        hold_s = self.random.uniform(0.2 * self.cluster.session_s, HOLD_SECONDS_MAX)
        return Fault("freeze", f"{self._described(broker)} frozen", broker.pause, broker.resume, hold_s)

    def _restart(self) -> Fault | None:
        broker = self._one(self.victims)
        if broker is None:
            return None

        def restart() -> None:
            broker.shut_down()
            broker.launch()

        return Fault("controlled restart", f"controlled restart of {self._described(broker)}", restart)

    def _roll(self) -> Fault:
        order = [self.cluster.broker(number) for number in self.victims]

        def roll() -> None:
            for broker in order:
                broker.shut_down()
                broker.launch()
                wait_until(partial(self._is_back, broker), f"{broker.name} is back", 60, every=0.2)

        text = f"rolling restart of {', '.join(str(broker.number) for broker in order)}"
        return Fault("rolling restart", text, roll)

    def _is_back(self, broker: Broker) -> bool:
        if not broker.is_running:
            broker.launch()
        return ask_once(broker, None) is not None and self.probe.are_all_led()

    # ---- the network

    def _cut_link(self) -> Fault | None:
        return self._cut_between("link cut", both_ways=True)

    def _cut_one_way(self) -> Fault | None:
        return self._cut_between("link cut one way", both_ways=False)

    def _cut_between(self, kind: str, *, both_ways: bool) -> Fault | None:
        first, second = self._one(self._everyone()), self._one(self._everyone())
        if first is None or second is None:
            return None
        pairs = [(first.place.address, second.place.address)]
        if both_ways:
            pairs.append((second.place.address, first.place.address))
        arrow = "and" if both_ways else "to"
        return self._cut(kind, f"no packets from {first.name} {arrow} {second.name}", pairs)

    def _isolate(self) -> Fault | None:
        broker = self._one(self._everyone())
        if broker is None:
            return None
        others = [each.place.address for each in self.cluster.brokers if each is not broker]
        outwards = [(broker.place.address, other) for other in others]
        inwards = [(other, broker.place.address) for other in others]
        which, pairs = self.random.choice(
            [
                ("both ways", outwards + inwards),
                ("both ways", outwards + inwards),
                ("outwards", outwards),
                ("inwards", inwards),
            ]
        )
        return self._cut(
            "broker cut off", f"{self._described(broker)} cut off from the others, {which}", pairs
        )

    def _split(self) -> Fault:
        numbers = self._everyone()
        self.random.shuffle(numbers)
        half = len(numbers) // 2
        left, right = numbers[:half], numbers[half:]
        address = {broker.number: broker.place.address for broker in self.cluster.brokers}
        pairs = [(address[a], address[b]) for a in left for b in right]
        pairs += [(b, a) for a, b in pairs]
        return self._cut("cluster split", f"{sorted(left)} and {sorted(right)} cut from each other", pairs)

    def _cut_from_zookeeper(self) -> Fault | None:
        broker = self._one(self._everyone())
        if broker is None:
            return None
        pairs = [(broker.place.address, address) for address in self.cluster.zookeeper_addresses]
        return self._cut("cut from ZooKeeper", f"{self._described(broker)} cut off from ZooKeeper", pairs)

    def _cut(self, kind: str, text: str, pairs: list[tuple[str, str]]) -> Fault:
        def cut() -> None:
            for sender, receiver in pairs:
                self.cluster.network.cut(sender, receiver)

        def mend() -> None:
            for sender, receiver in pairs:
                self.cluster.network.mend(sender, receiver)

        return Fault(kind, text, cut, mend, self.random.uniform(1, HOLD_SECONDS_MAX))

    # ---- ZooKeeper

    def _kill_zookeeper(self) -> Fault:
        index = self.random.randrange(3)
        member = self.cluster.zookeepers[index]
        text = f"ZooKeeper member {index + 1} killed"
        return Fault("ZooKeeper member killed", text, member.kill, member.launch, self.random.uniform(0.5, 5))

    def _freeze_zookeeper(self) -> Fault:
        index = self.random.randrange(3)
        member = self.cluster.zookeepers[index]
        text = f"ZooKeeper member {index + 1} frozen"
        return Fault(
            "ZooKeeper member frozen", text, member.pause, member.resume, self.random.uniform(0.5, 6)
        )

    def _kill_ensemble(self) -> Fault:
        def kill() -> None:
            for member in self.cluster.zookeepers:
                member.kill()

        def launch() -> None:
            for member in self.cluster.zookeepers:
                member.launch()
            for member in self.cluster.zookeepers:
                member.await_session()

        text = "all of ZooKeeper killed"
        return Fault("ZooKeeper ensemble killed", text, kill, launch, self.random.uniform(0, 5))

    def _freeze_ensemble(self) -> Fault:
        def pause() -> None:
            for member in self.cluster.zookeepers:
                member.pause()

        def resume() -> None:
            for member in self.cluster.zookeepers:
                member.resume()

        text = "all of ZooKeeper frozen"
        return Fault("ZooKeeper ensemble frozen", text, pause, resume, self.random.uniform(0.5, 6))

    # ---- disks and clients

    def _fill_disk(self) -> Fault | None:
        broker = self._one(self.victims)
        if broker is None:
            return None

        def fill() -> None:
            broker.may_end = True
            broker.disk.fill()

        def free() -> None:
            broker.disk.free()
            broker.kill()
            broker.launch()
            broker.may_end = False

        text = f"the disk of {self._described(broker)} full"
        return Fault("disk full", text, fill, free, self.random.uniform(1, 5))

    def _lose_disk(self) -> Fault | None:
        """A broker is dead until nobody counts on it any more, then comes back with nothing."""
        give_up = time.monotonic() + WHOLE_SECONDS_MAX
        while self.probe.why_not_whole() is not None:
            if time.monotonic() > give_up:
                return None  # its copies may be all there is: not now
            time.sleep(0.2)
        broker = self._one(self.victims)
        if broker is None:
            return None

        def lose() -> None:
            broker.kill()
            wait_until(
                lambda: self._isrs_with(broker) is not None, "it left every ISR or is alone", 60, every=0.2
            )
            if self._isrs_with(broker) == 0:
                broker.disk.wipe()
            broker.launch()

        return Fault("disk lost", f"the disk of {self._described(broker)} lost", lose)

    def _isrs_with(self, broker: Broker) -> int | None:
        """How many ISRs a dead broker is left in, by the word of all others; None while that may change.

        It stays in those that have nobody else: what was acknowledged there is on its disk alone. Topics that
        come and go do not count: one that waits for it to be deleted keeps its ISR, and they hold no records.
        """
        answers = [ask_once(each, None) for each in self.cluster.brokers if each is not broker]
        topics = [topic for a in answers if a is not None for topic in a.topics]
        rows = [row for topic in topics if CHURNED not in (topic.name or "") for row in topic.partitions]
        isrs = [row.isr_nodes for row in rows if broker.number in row.isr_nodes]
        is_settled = all(answers) and bool(rows) and all(len(isr) == 1 for isr in isrs)
        return len(isrs) if is_settled else None

    def _freeze_members(self) -> Fault:
        member = self.random.choice(self.members)
        text = f"{member.task.name} frozen"
        return Fault("group members frozen", text, member.pause, member.resume, self.random.uniform(1, 9))

    def _hurt_copier(self, kind: str) -> Fault:
        assert self.copiers is not None, "there are copiers where they can be hurt"
        text, begin, undo, hold_s = self.copiers.kinds()[kind]()
        return Fault(kind, text, begin, undo, hold_s)

    # ---- whom

    def _everyone(self) -> list[int]:
        return [broker.number for broker in self.cluster.brokers]

    def _one(self, numbers: list[int]) -> Broker | None:
        """A broker that this round has not hurt yet: often the controller or a leader, else any."""
        free = [number for number in numbers if number not in self._taken]
        wish = self.random.random()
        partition = self.random.randrange(4)
        anyone = self.random.choice(free) if free else None
        wanted = (
            self.probe.controller() if wish < 0.3 else self.probe.leader(partition) if wish < 0.6 else None
        )
        chosen = wanted if wanted in free else anyone
        if chosen is None:
            return None
        self._taken.add(chosen)
        return self.cluster.broker(chosen)

    def _described(self, broker: Broker) -> str:
        return f"{broker.name} (controller)" if self.probe.controller() == broker.number else broker.name


HARMLESS = frozenset(
    {"freeze", "ZooKeeper member killed", "ZooKeeper member frozen", "ZooKeeper ensemble killed"}
    | {"ZooKeeper ensemble frozen", "group members frozen", "link cut", "link cut one way", "broker cut off"}
    | {"cluster split", "cut from ZooKeeper"}
)
"""Faults that end no broker's process."""

ALONE = frozenset(
    {
        "kill -9 of all brokers",
        "rolling restart",
        "ZooKeeper ensemble killed",
        "disk lost",
        "kill -9 over and over",
    }
)
"""Faults that fill a round by themselves."""
