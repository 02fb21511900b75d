"""Faults: what may happen to a cluster, how often, and for how long, all from the seed."""

from collections import Counter
from collections.abc import Callable

from ottla.sim.broker import SimBroker
from ottla.sim.cluster import Cluster
from ottla.sim.world import MILLISECOND, SECOND
from ottla.sim.zookeeper import HOST as ZOOKEEPER


class Nemesis:
    """Draws a subset of the faults per seed (a swarm), then plays them one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.injected: Counter[str] = Counter()
        self.is_over = False
        faults: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "kill all": self._kill_all,
            "pause": self._pause,
            "shut down": self._shut_down,
            "cut brokers": self._cut_brokers,
            "cut one way": self._cut_one_way,
            "cut from zookeeper": self._cut_from_zookeeper,
            "expire session": self._expire,
            "stop zookeeper": self._stop_zookeeper,
            "slow zookeeper": self._slow_zookeeper,
            "slow network": self._slow_network,
            "kill controller": self._kill_controller,
            "drop controller": self._drop_controller,
            "clock jump": self._clock_jump,
            "power cut": self._power_cut,
        }
        count = self.world.between(3, len(faults))
        chosen = self.world.chance.sample(sorted(faults), count)
        self.faults = {name: faults[name] for name in sorted(chosen)}
        self.pause_us = self.world.between(200, 4_000) * MILLISECOND

    def begin(self) -> None:
        self._later(self.pause_us, self._strike)

    def _later(self, delay_us: int, run: Callable[[], None]) -> None:
        def due() -> None:
            if not self.is_over:
                run()

        self.world.after(delay_us, due)

    def _strike(self) -> None:
        name = self.world.chance.choice(list(self.faults))
        self.world.tell(f"fault: {name}")
        self.injected[name] += 1
        self.faults[name]()
        self._later(self.world.between(self.pause_us // 2, self.pause_us * 2), self._strike)

    # -- choosing ----------------------------------------------------------------------------

    def _running(self) -> list[SimBroker]:
        return [broker for broker in self.cluster.brokers.values() if broker.is_running]

    def _one(self) -> SimBroker | None:
        running = self._running()
        return self.world.chance.choice(running) if running else None

    def _span_us(self) -> int:
        """Short against the session time-out, about as long, or much longer."""
        return self.world.chance.choice([200, 1_000, 3_000, 6_000, 12_000]) * MILLISECOND

    # -- processes ---------------------------------------------------------------------------

    def _restart_later(self, broker: SimBroker) -> None:
        def start() -> None:
            if self.cluster.may_start(broker):
                broker.start()

        self._later(self._span_us(), start)

    def _kill(self) -> None:
        if (broker := self._one()) is not None:
            broker.kill()
            self._restart_later(broker)

    def _kill_all(self) -> None:
        for broker in self._running():
            broker.kill()
            self._restart_later(broker)

    def _power_cut(self) -> None:
        """The machine loses power, and with it what was not yet on the disk.

        One at a time, while everyone else is in sync, and it returns only after the controller has
        taken it out of every ISR: a replica that forgets and is elected before anyone noticed loses
        records by Kafka's own rules too, unless each write is flushed.
        """
        if self.cluster.forgetful or not self.cluster.is_whole():
            return
        broker = self.world.chance.choice(self._running())
        broker.kill()
        broker.lose_power()
        self.cluster.start_when_out_of_sync(broker)

    def _kill_controller(self) -> None:
        for broker in self._running():
            if broker.node.controller.is_active:
                broker.kill()
                self._restart_later(broker)

    def _pause(self) -> None:
        if (broker := self._one()) is not None:
            broker.pause()
            life = broker.life

            def go_on() -> None:
                if broker.is_paused and broker.life == life:
                    broker.resume()

            self._later(self._span_us(), go_on)

    def _shut_down(self) -> None:
        if (broker := self._one()) is not None:
            broker.shut_down()
            self._restart_later(broker)

    def _clock_jump(self) -> None:
        if (broker := self._one()) is not None:
            broker.clock.wall_jump_ms = self.world.chance.choice([-3_600_000, 3_600_000, 0])

    # -- network -----------------------------------------------------------------------------

    def _heal_later(self) -> None:
        self._later(self._span_us(), self.cluster.network.unblock_all)

    def _cut_brokers(self) -> None:
        """One broker, or a half, cannot talk to the rest; all still reach ZooKeeper and clients."""
        brokers = list(self.cluster.brokers.values())
        cut = self.world.chance.sample(brokers, self.world.between(1, len(brokers) - 1))
        for one in cut:
            for other in brokers:
                if other not in cut:
                    self.cluster.network.block(one.host, other.host)
                    self.cluster.network.block(other.host, one.host)
        self._heal_later()

    def _cut_one_way(self) -> None:
        one, other = self.world.chance.sample(list(self.cluster.brokers.values()), 2)
        self.cluster.network.block(one.host, other.host)
        self._heal_later()

    def _cut_from_zookeeper(self) -> None:
        if (broker := self._one()) is not None:
            self.cluster.network.block(broker.host, ZOOKEEPER)
            self.cluster.network.block(ZOOKEEPER, broker.host)
            self._heal_later()

    def _slow_network(self) -> None:
        self.cluster.network.is_slow = True

        def fast() -> None:
            self.cluster.network.is_slow = False

        self._later(self.world.between(1, 4) * SECOND, fast)

    # -- ZooKeeper ---------------------------------------------------------------------------

    def _expire(self) -> None:
        if (broker := self._one()) is not None:
            self.cluster.zookeeper.expire(broker)

    def _stop_zookeeper(self) -> None:
        self.cluster.zookeeper.is_up = False

        def up() -> None:
            self.cluster.zookeeper.is_up = True

        self._later(self._span_us(), up)

    def _slow_zookeeper(self) -> None:
        self.cluster.zookeeper.is_slow = True

        def fast() -> None:
            self.cluster.zookeeper.is_slow = False

        self._later(self.world.between(1, 6) * SECOND, fast)

    def _drop_controller(self) -> None:
        """Somebody deletes ``/controller``: an election although nobody died."""
        self.cluster.zookeeper.delete("/controller")
