"""A process in the simulated world that runs Ottla's own client: the real engine behind a simulated edge."""

from collections.abc import Callable
from functools import partial
from random import Random

from ottla.client.config import ClientConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.outputs import CloseLink, OpenLink, Output, SendOnLink
from ottla.sim.broker import FrameCutter
from ottla.sim.network import Connection, Network
from ottla.sim.world import MILLISECOND, World

REQUEST_TIMEOUT_MS = 8_000
API_TIMEOUT_MS = 20_000
METADATA_MAX_AGE_MS = 10_000


class LinkEnd:
    """One of the engine's links."""

    def __init__(self, client: "OwnClient", link: int) -> None:
        self.host = client.host
        self.connection: Connection | None = None
        self._client = client
        self._link = link
        self._cutter = FrameCutter()

    def bind(self, connection: Connection) -> None:
        self.connection = connection

    def received(self, data: bytes) -> None:
        for frame in self._cutter.feed(data):
            self._client.frame_came(self._link, self, frame)

    def lost(self, reason: str) -> None:
        self._client.link_lost(self._link, self, reason)


class OwnClient:
    """Carries between an engine and the world; what a program does with the engine goes through ``enter``."""

    def __init__(
        self, world: World, network: Network, name: str, addresses: dict[int, tuple[str, int]]
    ) -> None:
        self.world = world
        self.host = name
        self.is_stopped = False
        self._network = network
        self._links: dict[int, LinkEnd] = {}
        self._tick_at_ms: int | None = None
        config = ClientConfig(
            bootstrap_servers=tuple(addresses.values()),
            client_id=name,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            allow_auto_create_topics=False,
        )
        self.engine = Engine(config, world.now_ms, Random(world.chance.getrandbits(64)))

    def enter(self, run: Callable[[], object]) -> None:
        """Let something happen to the process, and do what comes of it."""
        self.engine.advance(self.world.now_ms)
        run()
        self.engine.run()
        while outputs := self.engine.take_outputs():
            for output in outputs:
                self._perform(output)
        self._aim()

    def _perform(self, output: Output) -> None:
        match output:
            case OpenLink():
                self._open(output)
            case SendOnLink():
                end = self._links.get(output.link)
                if end is not None and end.connection is not None:
                    end.connection.send(end, b"".join(output.parts))
            case CloseLink():
                end = self._links.pop(output.link, None)
                if end is not None and end.connection is not None:
                    end.connection.close(end)

    def _open(self, output: OpenLink) -> None:
        end = self._links[output.link] = LinkEnd(self, output.link)

        def connected(connection: Connection) -> None:
            if self._links.get(output.link) is not end:
                connection.close(end)
                return
            end.bind(connection)
            self.enter(partial(self.engine.link_connected, output.link))

        self._network.connect(
            end, output.host, output.port, connected, partial(self.link_lost, output.link, end)
        )

    def frame_came(self, link: int, end: LinkEnd, frame: bytes) -> None:
        if self._links.get(link) is end:
            self.enter(partial(self.engine.frame_came, link, memoryview(bytearray(frame))))

    def link_lost(self, link: int, end: LinkEnd, reason: str) -> None:
        if self._links.get(link) is end:
            del self._links[link]
            self.enter(partial(self.engine.link_lost, link, reason))

    def _aim(self) -> None:
        deadline_ms = self.engine.next_tick_ms()
        if deadline_ms is None or (self._tick_at_ms is not None and self._tick_at_ms <= deadline_ms):
            return
        self._tick_at_ms = deadline_ms

        def tick() -> None:
            if self._tick_at_ms == deadline_ms:
                self._tick_at_ms = None
                self.enter(partial(self.engine.tick, self.world.now_ms))

        self.world.after(deadline_ms * MILLISECOND - self.world.now_us, tick)
