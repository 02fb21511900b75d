"""A broker's guard in the simulated world: like the real one it ends the session of a dead process."""

from typing import Protocol

from ottla.sim.machine.network import Network
from ottla.sim.machine.zookeeper import HOST, ZooKeeperService
from ottla.sim.world import MILLISECOND, World
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete

NOTICE_US = (100, 3_000)
TRY_AGAIN_US = 50 * MILLISECOND


class Process(Protocol):
    """What the kernel tells of a process."""

    host: str
    life: int
    is_running: bool
    """Not while it is paused."""


class SimGuard:
    """Watches one life of a process, and holds its session."""

    def __init__(
        self, world: World, network: Network, zookeeper: ZooKeeperService, process: Process, session: int
    ) -> None:
        self._world = world
        self._network = network
        self._zookeeper = zookeeper
        self._process = process
        self._life = process.life
        self._session = session
        self._words: tuple[Create | Delete, ...] = ()

    def tell(self, broker: int, epoch: int) -> None:
        """Under which id and epoch the broker is registered."""
        content = f'{{"epoch":{epoch},"words":"process {self._life} ended"}}'.encode()
        path = paths.death(broker)
        parents = (*paths.parents(paths.DEATHS), paths.DEATHS)
        self._words = (*map(Create, parents), Delete(path, ANY_VERSION), Create(path, content))

    def wake(self) -> None:
        """Something happened to the process: look after it, a little later."""
        self._world.after(self._world.between(*NOTICE_US), self._look)

    def is_dead(self) -> bool:
        """Paused is not dead."""
        return self._process.life != self._life

    def _look(self) -> None:
        """Try for as long as the session lasts."""
        if self.is_dead() and self._session in self._zookeeper.sessions:
            if self._network.can_talk(self._process.host, HOST):
                self._zookeeper.end_of_dead(self._session, self._words)
            self._world.after(TRY_AGAIN_US, self._look)
