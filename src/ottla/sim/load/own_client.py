"""A process in the simulated world that runs Ottla's own client: the real engine behind a simulated edge."""

from collections.abc import Callable
from functools import partial
from random import Random

from ottla.client.config import ClientConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.outputs import CloseLink, OpenLink, Output, SendOnLink
from ottla.sim.load.clients import Surroundings
from ottla.sim.machine.broker import FrameCutter
from ottla.sim.machine.network import Connection
from ottla.sim.world import MILLISECOND

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

    def __init__(self, around: Surroundings, name: str) -> None:
        self.world = around.world
        self.host = name
        self.is_stopped = False
        self.is_dead = False
        self._frozen_until_us = 0
        self._held: list[Callable[[], object]] = []
        """What a frozen process will find when it goes on."""
        self._network = around.network
        self._links: dict[int, LinkEnd] = {}
        self._tick_at_ms: int | None = None
        config = ClientConfig(
            bootstrap_servers=tuple(around.addresses.values()),
            client_id=name,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            allow_auto_create_topics=False,
        )
        self.engine = Engine(config, self.world.now_ms, Random(self.world.chance.getrandbits(64)))

    def enter(self, run: Callable[[], object]) -> None:
        """Run something in the process, then carry out the engine's outputs."""
        if self.is_dead:
            return
        if self.world.now_us < self._frozen_until_us:
            self._held.append(run)
            return
        self.engine.advance(self.world.now_ms)
        run()
        self.engine.run()
        while outputs := self.engine.take_outputs():
            for output in outputs:
                self._perform(output)
        self._aim()

    def die(self) -> None:
        """The process is killed: its connections break, and nothing of it goes on."""
        self.is_dead = True
        self._links.clear()
        self._network.host_died(self.host)

    def freeze(self, for_us: int) -> None:
        """The process stands still for so long; what comes meanwhile waits for it."""
        self._frozen_until_us = max(self._frozen_until_us, self.world.now_us + for_us)
        self.world.after(for_us, self._resume_if_due)

    def thaw(self) -> None:
        """The process goes on now."""
        self._frozen_until_us = self.world.now_us
        self._resume_if_due()

    def _resume_if_due(self) -> None:
        if self.world.now_us >= self._frozen_until_us:
            held, self._held = self._held, []
            for run in held:
                self.enter(run)

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
