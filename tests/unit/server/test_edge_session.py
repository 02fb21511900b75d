"""What becomes of ZooKeeper's session before the node begins reaches the node all the same."""

import asyncio
from typing import Any, cast

from ottla.broker.node import Node
from ottla.server.edge import Edge
from ottla.server.timers import SystemClock
from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.zookeeper.ops import SessionConnected, SessionEvent, SessionExpired, SessionSuspended
from support.bench.node_bench import a_config

FIRST = SessionConnected(7, True, 6_000)
SECOND = SessionConnected(8, True, 6_000)
AGAIN = SessionConnected(7, False, 6_000)


class ListeningNode:
    """A node that only writes down what it hears of its session."""

    def __init__(self) -> None:
        self.config = a_config()
        self.heard: list[Any] = []
        self.is_started = True

    def start(self) -> None:
        self.heard.append("start")

    def on_zk_session(self, event: SessionEvent) -> None:
        self.heard.append(event)

    def take_outputs(self) -> list[Any]:
        return []

    def next_deadline_ms(self) -> None:
        return None


def heard(before: list[SessionEvent], after: list[SessionEvent]) -> list[Any]:
    """What the node hears when these events come before and after it begins."""

    async def run() -> list[Any]:
        node = ListeningNode()
        edge = Edge(asyncio.get_running_loop(), cast(Node, node), SystemClock())
        for event in before:
            edge.on_zk_event(event)
        assert node.heard == []
        edge.begin(cast(ZooKeeperClient, object()))
        for event in after:
            edge.on_zk_event(event)
        return node.heard

    return asyncio.run(run())


def test_node_hears_of_its_session_when_it_begins() -> None:
    assert heard([FIRST], []) == ["start", FIRST]


def test_session_that_falters_before_the_node_begins_is_not_taken_for_sound() -> None:
    assert heard([FIRST, SessionSuspended()], [AGAIN]) == ["start", FIRST, SessionSuspended(), AGAIN]


def test_session_that_expired_before_the_node_begins_is_never_mentioned() -> None:
    assert heard([FIRST, SessionSuspended(), SessionExpired(7)], [SECOND]) == ["start", SECOND]
    assert heard([FIRST, SessionExpired(7), SECOND], []) == ["start", SECOND]
