"""The composition root: a file of settings in, a running broker out."""

import asyncio
import faulthandler
import gc
import logging
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.broker.node import Node
from ottla.broker.outputs import Exit, KeepSession
from ottla.config.areas import BrokerConfig, ListenersConfig
from ottla.config.broker_file import BrokerFile, read_broker_file
from ottla.config.properties import parse_properties
from ottla.config.tls.contexts import TlsRefused, why_not_each_other
from ottla.model.cluster import Endpoint
from ottla.server.cuts import read_cuts, tell_obeyed
from ottla.server.edge import Edge
from ottla.server.guard.handle import GuardHandle
from ottla.server.guard.kept_session import end_kept_session, keep_session
from ottla.server.listener import ClientConnection, Listener
from ottla.server.open_files import raise_open_files_limit, warn_about_open_files
from ottla.server.timers import SystemClock
from ottla.server.tls.doors import TlsDoors
from ottla.server.tls.layer import TlsLayer
from ottla.server.zookeeper.session import ZooKeeperClient, ZooKeeperUnavailable
from ottla.storage.disk.port import OsDisk

if TYPE_CHECKING:
    from ottla.server.metrics import MetricsEndpoint

log = logging.getLogger(__name__)

DRAIN_SECONDS_MAX = 2.0
REACH_SECONDS_MAX = 3.0
IDLE_LOOK_SECONDS_MAX = 10.0
STORES_LOOK_SECONDS = 2.0
"""How soon files of certificates that were replaced are taken up."""
LOOPBACK = ("localhost", "127.", "::1")


class BrokerRefused(Exception):
    """The broker does not start; the text says why, one reason a line."""


def run_broker(path: Path, overrides: Mapping[str, str]) -> int:
    """Read the file, run the broker until it is told to end, and give the process's exit code."""
    if not __debug__:
        raise BrokerRefused("Ottla does not run under python -O: its assertions are part of its safety")
    config = read_config(path, overrides)
    raise_open_files_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(BrokerProcess(config).run())


def read_config(path: Path, overrides: Mapping[str, str] | None = None) -> BrokerConfig:
    """The file's settings with the overrides; ``BrokerRefused`` lists all that is wrong with them."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BrokerRefused(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BrokerRefused(f"{path} is not UTF-8 text") from None
    file = read_broker_file({**parse_properties(text), **(overrides or {})}, _host_name)
    if file.config is None:
        problems = "\n".join(f"  {problem}" for problem in file.problems)
        raise BrokerRefused(f"{path} has settings that Ottla cannot run with:\n{problems}")
    _warn_about(file, file.config)
    return file.config


def _host_name() -> str:
    """Asked for only where it is advertised: a name server that does not answer costs many seconds."""
    return socket.getfqdn() or "localhost"


def _warn_about(file: BrokerFile, config: BrokerConfig) -> None:
    if file.unknown:
        log.warning("unknown settings are ignored names=%s", ",".join(file.unknown))
    if file.without_effect:
        log.warning("settings without effect in Ottla names=%s", ",".join(file.without_effect))
    open_listeners = [
        e
        for e in config.listeners.listeners
        if not e.host.startswith(LOOPBACK) and e.listener not in config.listeners.tls
    ]
    if open_listeners:
        log.warning(
            "listeners without encryption are open to other machines listeners=%s",
            ",".join(f"{e.listener}://{e.host}:{e.port}" for e in open_listeners),
        )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def open_doors(listeners: ListenersConfig) -> TlsDoors:
    """The TLS of all listeners; ``BrokerRefused`` if stores are not sound, or brokers would not accept
    each other with stores like ours."""
    try:
        doors = TlsDoors(listeners.tls)
    except TlsRefused as refused:
        raise BrokerRefused(str(refused)) from None
    for name in {listeners.inter_broker_listener_name, listeners.control_plane_listener_name}:
        if name is None or name not in doors:
            continue
        host = next(each.host for each in listeners.advertised_listeners if each.listener == name)
        why = why_not_each_other(listeners.tls[name], doors.material(name), host)
        if why is not None:
            raise BrokerRefused(
                f"brokers would not accept each other on the listener {name}: with its stores, and as {host}:"
                f" {why}; see ssl.truststore and the names (SAN) in the certificate"
            )
    return doors


def end_signals() -> list[signal.Signals]:
    """The signals that ask a broker to leave; one started by ``nohup`` outlives its terminal."""
    asking = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    return asking[:2] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else asking


class BrokerProcess:
    """One broker from its listeners' sockets to its exit code."""

    def __init__(self, config: BrokerConfig) -> None:
        self._given = config
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.config = config
        self.edge: Edge
        self._metrics: MetricsEndpoint | None = None
        self._guard: GuardHandle | None = None
        self._tls: TlsDoors
        self._is_asked_to_end = False

    async def run(self) -> int:
        """Serve until the node is done; the exit code is the node's."""
        self._tls = open_doors(self._given.listeners)
        self._bind()
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        node = Node(self.config, clock, OsDisk(), random.Random(), random.SystemRandom())
        self.edge = Edge(loop, node, clock)
        self.edge.tls = self._tls
        self._tls.warn_of_ends()
        node.meters.certificate_ends = self._tls.ends()
        node.own_subject = self._tls.subject(self._given.listeners.inter_broker_listener_name)
        self.edge.on_accept = self._accept
        self.edge.on_refuse = self._refuse
        self.edge.on_keep_session = self._keep_session
        self.edge.on_end_session = self._end_session
        for number in end_signals():
            loop.add_signal_handler(number, self._asked_to_end, number)
        if cuts := self.config.connections.ottla_cuts_file:
            loop.add_signal_handler(signal.SIGUSR2, self._obey_cuts, Path(cuts))
            if Path(cuts).exists():
                self._obey_cuts(Path(cuts))
        await self._show_metrics(node)
        connecting = loop.create_task(self._connect_to_zookeeper())
        try:
            either: set[asyncio.Future[Any]] = {connecting, self.edge.exit}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                self.edge.begin(connecting.result())
            return self._said(await self.edge.exit)
        except ZooKeeperUnavailable as unavailable:
            return self._said(Exit(1, str(unavailable)))
        finally:
            await self._stop(connecting)

    def _asked_to_end(self, number: signal.Signals) -> None:
        """Begin a controlled shutdown; a second signal cuts it short, but a second SIGHUP does not."""
        if number is signal.SIGHUP and self._is_asked_to_end:
            return
        self._is_asked_to_end = True
        self.edge.begin_shutdown()

    def _obey_cuts(self, file: Path) -> None:
        """A file that cannot be read cuts nothing, and whoever wrote it hears nothing."""
        try:
            addresses = read_cuts(file)
            self.edge.cut_off(addresses)
            tell_obeyed(file, addresses)
        except (OSError, UnicodeError) as error:
            log.error("cuts cannot be obeyed file=%s reason=%s", file, error)

    def _bind(self) -> None:
        """Bind the ports before anybody is told of them; port 0 becomes a real one here."""
        send_bytes, receive_bytes = self._socket_buffers()
        for endpoint in self._given.listeners.listeners:
            try:
                listener = Listener(endpoint, send_bytes, receive_bytes)
            except OSError as error:
                self._refuse()
                where = f"{endpoint.listener}://{endpoint.host}:{endpoint.port}"
                raise BrokerRefused(
                    f"cannot listen on {where}: {error.strerror or error}; stop what listens there, or name"
                    " another address in listeners"
                ) from None
            self._listeners.append(listener)
        bound = tuple(listener.endpoint for listener in self._listeners)
        ports = {endpoint.listener: endpoint.port for endpoint in bound}
        advertised = tuple(
            replace(endpoint, port=endpoint.port or ports[endpoint.listener])
            for endpoint in self._given.listeners.advertised_listeners
        )
        listeners = replace(self._given.listeners, listeners=bound, advertised_listeners=advertised)
        self.config = replace(self._given, listeners=listeners)

    async def _show_metrics(self, node: Node) -> None:
        """Only where metrics are asked for: the page and a clock reading per request cost something."""
        node.client_quotas.now_s = time.perf_counter
        address = self.config.connections.metrics_address
        if address is None:
            return
        from ottla.broker.runtime.meters import IdleMeter, RequestMeter
        from ottla.server.metrics import MetricsEndpoint

        node.connections.meter = RequestMeter(time.perf_counter)
        node.meters.idle = IdleMeter(time.perf_counter, time.thread_time)
        self._metrics = MetricsEndpoint(node, *address)
        try:
            await self._metrics.open()
        except OSError as error:
            self._refuse()
            where = "{}:{}".format(*address)
            raise BrokerRefused(
                f"cannot show metrics on {where}: {error.strerror or error}; stop what listens there, or name"
                " another address in ottla.metrics.listener"
            ) from None

    def _socket_buffers(self) -> tuple[int, int]:
        """Kafka's default of 100 KB is small today: unless the file asks for a size, the system chooses."""
        limits, asked = self._given.connections, self._given.originals
        return (
            limits.socket_send_buffer_bytes if "socket.send.buffer.bytes" in asked else -1,
            limits.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in asked else -1,
        )

    async def _connect_to_zookeeper(self) -> ZooKeeperClient:
        zookeeper = self.config.zookeeper
        log.info("connecting to zookeeper connect=%s", zookeeper.zookeeper_connect)
        client = await ZooKeeperClient.connect(
            zookeeper.zookeeper_connect,
            limit_ms=zookeeper.connection_timeout_ms,
            session_timeout_ms=zookeeper.zookeeper_session_timeout_ms,
            listener=lambda event: self.edge.on_zk_event(event),
        )
        if zookeeper.ottla_guard_enable:
            self._guard = GuardHandle(self.edge.loop, client.ensemble)
            self._guard.start()
        await client.create_chroot()
        return client

    def _keep_session(self, output: KeepSession, client: ZooKeeperClient) -> None:
        if self._guard is not None:
            self._guard.hand_over(client, output.broker_id, output.epoch)
        try:
            keep_session(Path(output.path), client.session_id, client.session_password)
        except OSError as error:
            log.warning("the session cannot be noted file=%s reason=%s", output.path, error)

    def _end_session(self, path: str, session_id: int) -> None:
        self._spawn(end_kept_session(Path(path), session_id, self.config.zookeeper.zookeeper_connect))

    def _accept(self) -> None:
        self._spawn(self._open_listeners())

    async def _open_listeners(self) -> None:
        backlog = self.config.connections.socket_listen_backlog_size
        for listener in self._listeners:
            await listener.open(self.edge.loop, self._maker(listener.endpoint.listener), backlog)
        addresses = ",".join(f"{e.listener}://{e.host}:{e.port}" for e in self.config.listeners.listeners)
        log.info("listening broker=%d listeners=%s", self.edge.node.broker_id, addresses)
        warn_about_open_files(len(self.edge.node.log_dirs.logs))
        self._tidy_memory()
        self._spawn(self._tend_idle_clients())
        if self._tls:
            self._spawn(self._look_at_stores())
        for endpoint in self.config.listeners.advertised_listeners:
            self._spawn(self._check_reach(endpoint))

    def _maker(self, listener: str) -> Callable[[], asyncio.BaseProtocol]:
        if listener not in self._tls:
            return partial(ClientConnection, self.edge, listener)
        context = partial(self._tls.server, listener)
        return lambda: TlsLayer(self.edge.loop, context, ClientConnection(self.edge, listener, True))

    async def _look_at_stores(self) -> None:
        while True:
            await asyncio.sleep(STORES_LOOK_SECONDS)
            self._tls.look(self.edge.node.config.listeners.tls)
            self.edge.node.meters.certificate_ends = self._tls.ends()

    @staticmethod
    def _tidy_memory() -> None:
        """Objects made at the start live on: the garbage collector need not look at them again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 10, 100)

    async def _tend_idle_clients(self) -> None:
        """Close idle connections, and free buffers; as in Kafka, a negative limit means none."""
        limit_ms = self.config.connections.connections_max_idle_ms
        pause_s = IDLE_LOOK_SECONDS_MAX
        if limit_ms >= 0:
            pause_s = max(0.1, min(pause_s, limit_ms / 5000))
        while True:
            await asyncio.sleep(pause_s)
            self.edge.tend_idle_clients()

    async def _check_reach(self, endpoint: Endpoint) -> None:
        """Clients are sent to the advertised address: if not even we can reach it, say so now."""
        try:
            async with asyncio.timeout(REACH_SECONDS_MAX):
                _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            writer.close()
        except (OSError, UnicodeError, TimeoutError) as error:
            log.warning(
                "the advertised address cannot be reached from this machine, so clients may not reach it"
                " either: see advertised.listeners listener=%s address=%s:%d reason=%s",
                endpoint.listener,
                endpoint.host,
                endpoint.port,
                error or "no answer",
            )

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self) -> None:
        for listener in self._listeners:
            listener.close()

    @staticmethod
    def _said(last: Exit) -> int:
        log.log(
            logging.INFO if last.code == 0 else logging.ERROR,
            "exit code=%d reason=%s",
            last.code,
            last.reason,
        )
        return last.code

    async def _stop(self, connecting: "asyncio.Task[ZooKeeperClient]") -> None:
        self._refuse()
        if self._metrics is not None:
            self._metrics.close()
        for task in list(self._tasks):
            task.cancel()
        await self.edge.drain(DRAIN_SECONDS_MAX)
        connecting.cancel()
        await asyncio.wait({connecting})
        if not connecting.cancelled() and connecting.exception() is None:
            await connecting.result().close()
        if self._guard is not None:
            self._guard.dismiss()


def main(arguments: list[str]) -> int:
    """``python -m ottla.server server.properties``, with ``--override name=value`` behind it."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr
    )
    faulthandler.register(signal.SIGUSR1, 2)  # Writes the stacks of all threads to the log.
    file, *rest = arguments or [""]
    overrides = dict(word.partition("=")[::2] for word in rest[1::2])
    if not file or any(word != "--override" for word in rest[::2]) or len(rest) % 2:
        sys.stderr.write("usage: ottla broker server.properties [--override name=value]\n")
        return 2
    try:
        return run_broker(Path(file), overrides)
    except BrokerRefused as refused:
        sys.stderr.write(f"ottla: {refused}\n")
        return 1
