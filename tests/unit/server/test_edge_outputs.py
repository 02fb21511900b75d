"""What the node asks its edge to do is done to the last, whatever becomes of what stands before."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.node import Node
from ottla.broker.outputs import AcceptClients, Exit
from ottla.broker.runtime.meters import Meters
from ottla.server.edge import Edge
from ottla.server.timers import SystemClock
from ottla.wire.keys import ApiKey
from support.bench.node_bench import a_config


class AskingNode:
    """A node that has asked for something."""

    is_started = True

    def __init__(self, *outputs: Any) -> None:
        self.config = a_config()
        self._outputs = list(outputs)
        self.deadlines_asked = 0
        self.meters = Meters()

    def on_request(self, connection: int, frame: memoryview) -> None:
        raise RuntimeError("the handler has a bug")

    def take_outputs(self) -> list[Any]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def next_deadline_ms(self) -> None:
        self.deadlines_asked += 1


def test_an_output_that_fails_does_not_take_the_end_along(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("the handler is closed")

    async def run() -> tuple[Exit, int]:
        node = AskingNode(AcceptClients(), AcceptClients(), Exit(0, "stopped"))
        edge = Edge(asyncio.get_running_loop(), cast(Node, node), SystemClock())
        edge.on_accept = fail
        edge.end_turn()
        assert edge.exit.done()
        return edge.exit.result(), node.deadlines_asked

    assert asyncio.run(run()) == (Exit(0, "stopped"), 1)
    assert [record.message for record in caplog.records] == ["internal error in=output"] * 2


def test_a_request_that_ends_in_a_bug_is_counted_by_its_api_and_its_client_hung_up_on() -> None:
    closed: list[bool] = []
    client = SimpleNamespace(id=1, close=lambda: closed.append(True))

    async def run() -> AskingNode:
        node = AskingNode()
        edge = Edge(asyncio.get_running_loop(), cast(Node, node), SystemClock())
        edge.request_came(cast(Any, client), memoryview(bytes((0, 1, 0, 17))))
        return node

    assert asyncio.run(run()).meters.internal_errors == {ApiKey.FETCH: 1}
    assert closed == [True]
