"""The simulated ZooKeeper, where a process ends and the next one begins."""

from typing import Any

from ottla.sim.machine.network import Network
from ottla.sim.machine.zookeeper import ZooKeeperService
from ottla.sim.world import SECOND, World
from ottla.zookeeper.ops import GetData, Lost


class Process:
    """An owner of sessions that keeps what it is told."""

    host = "one"
    is_running = True
    is_paused = False
    life = 1

    def __init__(self) -> None:
        self.results: list[tuple[int, Any]] = []

    def on_zk_event(self, event: Any) -> None: ...

    def on_zk_result(self, token: int, result: Any) -> None:
        self.results.append((token, result))


def test_what_a_process_asks_without_a_session_is_lost() -> None:
    world = World(1)
    process = Process()

    ZooKeeperService(world, Network(world)).submit(process, 7, GetData("/controller"))
    world.run_until(SECOND)

    assert process.results == [(7, Lost(False))]


def test_what_a_dead_process_asked_is_not_answered_to_the_next_one() -> None:
    """Seed 7260084: it was started at once, and an answer came that it had not asked for."""
    world = World(1)
    process = Process()

    ZooKeeperService(world, Network(world)).submit(process, 7, GetData("/controller"))
    process.life += 2
    world.run_until(SECOND)

    assert process.results == []
