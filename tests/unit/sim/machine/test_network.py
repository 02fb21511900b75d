"""The simulated network loses no more than a real one: what was sent before the end still arrives."""

from dataclasses import dataclass, field

from ottla.sim.machine.network import Connection, Network
from ottla.sim.world import SECOND, World


@dataclass(eq=False)
class Talker:
    """One side of a connection, and what it heard."""

    host: str
    heard: list[str] = field(default_factory=list)

    def bind(self, connection: Connection) -> None:
        """Nothing to keep."""

    def received(self, data: bytes) -> None:
        self.heard.append(data.decode())

    def lost(self, reason: str) -> None:
        self.heard.append(f"({reason})")


def a_connection(seed: int = 1) -> tuple[World, Connection, Talker, Talker]:
    world = World(seed)
    left, right = Talker("left"), Talker("right")
    return world, Connection(Network(world), left, right), left, right


def test_what_was_sent_before_the_end_arrives_and_then_the_end() -> None:
    world, connection, left, right = a_connection()
    connection.network.slow_hosts["right"] = None
    connection.send(left, b"order")
    connection.send(right, b"answer")

    connection.close(left, "closed")
    connection.send(left, b"too late")
    world.run_until(SECOND)

    assert right.heard == ["order", "(closed)"]
    assert left.heard == [], "whoever hung up listens no more"


def test_what_meets_a_cut_after_the_end_is_lost() -> None:
    world, connection, left, right = a_connection()
    connection.send(left, b"order")
    connection.close(left, "closed")

    connection.network.block("left", "right")
    world.run_until(SECOND)

    assert right.heard == ["(closed)"]


def test_a_reset_may_come_before_or_behind_what_was_under_way() -> None:
    seen = set()
    for seed in range(20):
        world, connection, left, right = a_connection(seed)
        connection.send(left, b"order")
        connection.reset("reset")
        world.run_until(SECOND)
        assert left.heard == ["(reset)"]
        seen.add(tuple(right.heard))

    assert seen == {("order", "(reset)"), ("(reset)",)}


def test_what_was_under_way_when_a_cut_came_arrives_before_what_was_sent_since() -> None:
    world, connection, left, right = a_connection()
    network = connection.network
    network._connections[connection] = None
    network.slow_hosts["right"] = None
    connection.send(left, b"first")
    connection.send(left, b"second")

    network.block("left", "right")
    connection.send(left, b"third")
    world.run_until(SECOND)
    assert right.heard == []
    network.unblock_all()
    world.run_until(2 * SECOND)

    assert right.heard == ["first", "second", "third"]
