"""Faults: what may happen to a cluster; when, to whom and for how long comes from the plan."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TypeAlias

from ottla.sim.cluster import Cluster
from ottla.sim.faults.operations import OPERATIONS, Operations
from ottla.sim.machine.broker import Doom, SimBroker
from ottla.sim.machine.zookeeper import HOST as ZOOKEEPER
from ottla.sim.plan import Strike
from ottla.sim.world import MILLISECOND, SECOND

Fault: TypeAlias = Callable[[Random], bool]
"""Strikes, if it can; returns whether it did."""

BUSY_US = 1_500 * MILLISECOND
SUPERVISOR_US = 3 * SECOND
HOUR_MS = 3_600_000
TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS


class Nemesis:
    """Plays the strikes of a plan; one that cannot happen at its time gives way to another kind."""

    def __init__(self, cluster: Cluster, strikes: tuple[Strike, ...]) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.strikes = strikes
        self.injected: Counter[str] = Counter()
        self.is_over = False
        operations = Operations(cluster)
        self._faults: dict[str, Fault] = {
            "kill": self._kill,
            "kill leader": self._kill_leader,
            "kill all": self._kill_all,
            "kill controller": self._kill_controller,
            "kill controller in mid-turn": self._kill_controller_in_mid_turn,
            "pause": self._pause,
            "pause controller": self._pause_controller,
            "shut down": self._shut_down,
            "power cut": self._power_cut,
            "empty disk": self._empty_disk,
            "disk full": self._disk_full,
            "disk error": self._disk_error,
            "clock jump": self._clock_jump,
            "cut brokers": self._cut_brokers,
            "cut one way": self._cut_one_way,
            "cut ring": self._cut_ring,
            "cut clients": self._cut_clients,
            "reset connections": self._reset_connections,
            "slow network": self._slow_network,
            "slow link": self._slow_link,
            "cut from zookeeper": self._cut_from_zookeeper,
            "expire session": self._expire,
            "stop zookeeper": self._stop_zookeeper,
            "slow zookeeper": self._slow_zookeeper,
            "split zookeeper": self._split_zookeeper,
            "drop controller": self._drop_controller,
            **operations.by_name(),
        }

    def begin(self) -> None:
        for strike in self.strikes:
            self._later(strike.at_us, lambda strike=strike: self._strike(strike))  # type: ignore[misc]
        self._later(SUPERVISOR_US, self._supervise)

    def _later(self, delay_us: int, run: Callable[[], None]) -> None:
        def due() -> None:
            if not self.is_over:
                run()

        self.world.after(delay_us, due)

    def _strike(self, strike: Strike) -> None:
        luck = Random(strike.luck)
        others = sorted(self._faults)
        luck.shuffle(others)
        for kind in (strike.kind, *others):
            self.world.announce(f"fault {strike.number}: {kind}")
            if self._faults[kind](luck):
                self.world.tell("")
                self.injected[kind] += 1
                self.world.busy_until_us = self.world.now_us + BUSY_US
                return
        self.world.announce("")

    def _supervise(self) -> None:
        """Start brokers that ended by themselves, as a supervisor does."""
        for broker in self.cluster.brokers.values():
            if broker.exit is not None and self.cluster.may_start(broker):
                broker.start()
        self._later(SUPERVISOR_US, self._supervise)

    # -- choosing ----------------------------------------------------------------------------

    def _running(self) -> list[SimBroker]:
        return [broker for broker in self.cluster.brokers.values() if broker.is_running]

    def _one(self, luck: Random) -> SimBroker | None:
        running = self._running()
        return luck.choice(running) if running else None

    def _controllers(self) -> list[SimBroker]:
        return [broker for broker in self._running() if broker.node.controller.is_active]

    @staticmethod
    def _span_us(luck: Random) -> int:
        """Short against the session time-out, about as long, or much longer."""
        return luck.choice([200, 1_000, 3_000, 6_000, 12_000]) * MILLISECOND

    # -- processes ---------------------------------------------------------------------------

    def _restart_later(self, broker: SimBroker, luck: Random) -> None:
        def start() -> None:
            if self.cluster.may_start(broker):
                broker.start()

        self._later(self._span_us(luck), start)

    def _kill_these(self, brokers: list[SimBroker], luck: Random) -> bool:
        for broker in brokers:
            broker.kill()
            self._restart_later(broker, luck)
        return bool(brokers)

    def _kill(self, luck: Random) -> bool:
        one = self._one(luck)
        return self._kill_these([one] if one is not None else [], luck)

    def _kill_leader(self, luck: Random) -> bool:
        """The leader of a partition that clients write to, in the middle of it."""
        state = self.cluster.state_of(luck.choice(self.cluster.partitions()))
        leader = self.cluster.brokers.get(state["leader"]) if state is not None else None
        return self._kill_these([leader] if leader is not None and leader.is_running else [], luck)

    def _kill_all(self, luck: Random) -> bool:
        return self._kill_these(self._running(), luck)

    def _kill_controller(self, luck: Random) -> bool:
        return self._kill_these(self._controllers(), luck)

    def _kill_controller_in_mid_turn(self, luck: Random) -> bool:
        """It dies between two of the things it sends, in whatever it does next."""
        controllers = self._controllers()
        if not controllers or len(self._running()) < 2:
            return False
        for controller in controllers:
            then: Callable[[], None] = lambda broker=controller: self._restart_later(broker, luck)  # type: ignore[misc] # noqa: E731
            controller.doom = Doom(luck.randint(1, 12), then)
        victims = [broker for broker in self._running() if broker not in controllers]
        return self._kill_these([luck.choice(victims)] if victims else [], luck)

    def _pause_these(self, brokers: list[SimBroker], luck: Random) -> bool:
        for broker in brokers:
            broker.pause()
            self._later(self._span_us(luck), self._resumption(broker))
        return bool(brokers)

    @staticmethod
    def _resumption(broker: SimBroker) -> Callable[[], None]:
        life = broker.life

        def go_on() -> None:
            if broker.is_paused and broker.life == life:
                broker.resume()

        return go_on

    def _pause(self, luck: Random) -> bool:
        one = self._one(luck)
        return self._pause_these([one] if one is not None else [], luck)

    def _pause_controller(self, luck: Random) -> bool:
        return self._pause_these(self._controllers(), luck)

    def _shut_down(self, luck: Random) -> bool:
        if (broker := self._one(luck)) is None:
            return False
        broker.shut_down()
        self._restart_later(broker, luck)
        return True

    def _clock_jump(self, luck: Random) -> bool:
        if (broker := self._one(luck)) is None:
            return False
        jumps = [-HOUR_MS, HOUR_MS, 0]
        if not self.cluster.znodes.unclean_allowed:
            jumps += [-TEN_YEARS_MS, TEN_YEARS_MS]  # otherwise retention would remove the loss receipts
        broker.clock.wall_jump_ms = luck.choice(jumps)
        return True

    # -- disks -------------------------------------------------------------------------------

    def _forget(self, luck: Random, how: Callable[[SimBroker], None]) -> bool:
        """A machine loses data.

        One at a time, while everyone else is in sync, and it returns only after the controller has
        taken it out of every ISR: a replica that forgets and is elected before anyone noticed loses
        records by Kafka's own rules too, unless each write is flushed.
        """
        if self.cluster.forgetful or not self.cluster.is_whole():
            return False
        broker = luck.choice(self._running())
        broker.kill(with_guard=True)
        how(broker)
        self.cluster.start_when_out_of_sync(broker)
        return True

    def _power_cut(self, luck: Random) -> bool:
        """What was not yet on the disk is gone, in whole or in part."""
        return self._forget(luck, SimBroker.lose_power)

    def _empty_disk(self, luck: Random) -> bool:
        """The machine comes back with new disks."""
        return self._forget(luck, SimBroker.wipe)

    def _disk_full(self, luck: Random) -> bool:
        return self._spoil(luck, lambda broker, path: broker.disk.fill(path, luck.randint(0, 3_000)))

    def _disk_error(self, luck: Random) -> bool:
        operations = luck.choice([{"write"}, {"fsync"}, {"read"}, {"write", "fsync", "read", "create"}])
        return self._spoil(luck, lambda broker, path: broker.disk.spoil(path, frozenset(operations)))

    def _spoil(self, luck: Random, how: Callable[[SimBroker, str], None]) -> bool:
        """One directory's disk goes bad; later somebody mends it and starts the broker again."""
        if (broker := self._one(luck)) is None:
            return False
        path = luck.choice(sorted(broker.disk.disks))
        self.world.tell(f"disk {path}")
        how(broker, path)

        def mend() -> None:
            broker.disk.heal()
            if broker.is_running and broker.node.is_started and broker.node.log_dirs.offline:
                broker.kill()
                self._restart_later(broker, luck)

        self._later(self._span_us(luck), mend)
        return True

    # -- network -----------------------------------------------------------------------------

    def _heal_later(self, luck: Random) -> bool:
        self._later(self._span_us(luck), self.cluster.network.unblock_all)
        return True

    def _block(self, one: str, other: str) -> None:
        self.cluster.network.block(one, other)
        self.cluster.network.block(other, one)

    def _cut_brokers(self, luck: Random) -> bool:
        """One broker, or a half, cannot talk to the rest; all still reach ZooKeeper and clients."""
        brokers = list(self.cluster.brokers.values())
        cut = luck.sample(brokers, luck.randint(1, len(brokers) - 1))
        for one in cut:
            for other in brokers:
                if other not in cut:
                    self._block(one.host, other.host)
        return self._heal_later(luck)

    def _cut_one_way(self, luck: Random) -> bool:
        one, other = luck.sample(list(self.cluster.brokers.values()), 2)
        self.cluster.network.block(one.host, other.host)
        return self._heal_later(luck)

    def _cut_ring(self, luck: Random) -> bool:
        """Each broker reaches its neighbours alone: no two agree on who is there."""
        ring = list(self.cluster.brokers.values())
        if len(ring) < 4:
            return False
        luck.shuffle(ring)
        for at, one in enumerate(ring):
            for distance in range(2, len(ring) - 1):
                self._block(one.host, ring[(at + distance) % len(ring)].host)
        return self._heal_later(luck)

    def _cut_clients(self, luck: Random) -> bool:
        """Some clients cannot reach some brokers."""
        for client in self.cluster.clients():
            for broker in self.cluster.brokers.values():
                if luck.random() < 0.4:
                    self._block(client, broker.host)
        return self._heal_later(luck)

    def _reset_connections(self, luck: Random) -> bool:
        return self.cluster.network.reset_some(luck, luck.choice([0.1, 0.5, 1.0])) > 0

    def _slow_network(self, luck: Random) -> bool:
        self.cluster.network.is_slow = True

        def fast() -> None:
            self.cluster.network.is_slow = False

        self._later(luck.randint(1, 4) * SECOND, fast)
        return True

    def _slow_link(self, luck: Random) -> bool:
        """Whatever goes to or from one broker is late."""
        host = luck.choice(list(self.cluster.brokers.values())).host
        self.cluster.network.slow_hosts[host] = None
        self._later(luck.randint(1, 6) * SECOND, lambda: self.cluster.network.slow_hosts.pop(host, None))
        return True

    # -- ZooKeeper ---------------------------------------------------------------------------

    def _cut_from_zookeeper(self, luck: Random) -> bool:
        if (broker := self._one(luck)) is None:
            return False
        self._block(broker.host, ZOOKEEPER)
        return self._heal_later(luck)

    def _expire(self, luck: Random) -> bool:
        if (broker := self._one(luck)) is None or self.cluster.zookeeper.session_of(broker) is None:
            return False
        self.cluster.zookeeper.expire(broker)
        return True

    def _stop_zookeeper(self, luck: Random) -> bool:
        self.cluster.zookeeper.is_up = False

        def up() -> None:
            self.cluster.zookeeper.is_up = True

        self._later(self._span_us(luck), up)
        return True

    def _slow_zookeeper(self, luck: Random) -> bool:
        self.cluster.zookeeper.is_slow = True

        def fast() -> None:
            self.cluster.zookeeper.is_slow = False

        self._later(luck.randint(1, 6) * SECOND, fast)
        return True

    def _split_zookeeper(self, luck: Random) -> bool:
        """Some servers lose the quorum: their clients must find others, each in its own time."""
        brokers = list(self.cluster.brokers.values())
        for broker in luck.sample(brokers, luck.randint(1, len(brokers) - 1)):
            self.cluster.zookeeper.split(broker, luck.choice([150, 700, 2_500, 5_000]) * MILLISECOND)
        return True

    def _drop_controller(self, luck: Random) -> bool:
        """Somebody deletes ``/controller``: an election although nobody died."""
        return self.cluster.zookeeper.delete("/controller")


FAULTS = (
    "clock jump",
    "cut brokers",
    "cut clients",
    "cut from zookeeper",
    "cut one way",
    "cut ring",
    "disk error",
    "disk full",
    "drop controller",
    "empty disk",
    "expire session",
    "kill",
    "kill all",
    "kill controller",
    "kill controller in mid-turn",
    "kill leader",
    "pause",
    "pause controller",
    "power cut",
    "reset connections",
    "shut down",
    "slow link",
    "slow network",
    "slow zookeeper",
    "split zookeeper",
    "stop zookeeper",
)
KINDS = tuple(sorted((*FAULTS, *OPERATIONS)))
"""Everything that a plan may name."""
