"""What every room of a broker stands on."""

from random import Random

from ottla.broker.outputs import Output
from ottla.broker.runtime.clock import Clock
from ottla.broker.runtime.identity import Identity
from ottla.broker.runtime.meters import Meters
from ottla.broker.runtime.tasks import TaskGroup, Tasks
from ottla.broker.runtime.threads import Threads
from ottla.broker.runtime.timers import Timers
from ottla.broker.runtime.zookeeper import ZooKeeper
from ottla.config.areas import BrokerConfig
from ottla.model.ids import BrokerId

FROZEN_MS = 1_000
"""A timer that is so late tells that the process stood still."""


class Runtime:
    """Clock, chance, timers, tasks, threads, ZooKeeper, outputs, counters, settings. It knows no room."""

    def __init__(self, config: BrokerConfig, clock: Clock, random: Random) -> None:
        self.config = config
        """The settings of this moment: the file's, with the dynamic ones of ZooKeeper over them."""
        self.clock = clock
        self.random = random
        self.identity = Identity(BrokerId(config.broker_id))
        self.outputs: list[Output] = []
        self.meters = Meters()
        self.timers = Timers(clock)
        self.threads = Threads(self.outputs)
        self.zk = ZooKeeper(self.outputs)
        self.tasks = Tasks(clock, self.timers, self.zk)
        self.own = TaskGroup(self.tasks)
        """Tasks of the broker itself, that nobody else waits for."""

    def may_be_deposed(self) -> bool:
        """Others may lead by now: ZooKeeper is out of reach, this process has just been frozen, or its
        session ended."""
        return self.identity.is_untold or not self.zk.is_connected or self.timers.late_ms() > FROZEN_MS
