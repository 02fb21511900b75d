"""The ZooKeeper session at asyncio's edge: one connection, one timer, results in the server's order."""

import asyncio
import logging
import random
import ssl
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, cast, overload

from ottla.server.zookeeper.connection import REFUSED, Connection, reach, why_unreachable
from ottla.znodes.paths import parents
from ottla.zookeeper.batches import BATCH_REPLY_BYTES_MAX, halves, plan_reads
from ottla.zookeeper.connect_string import Host, parse_connect_string
from ottla.zookeeper.ops import (
    AclFound,
    AclSet,
    AuthFailed,
    Check,
    Checked,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Exists,
    Failed,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    Op,
    ReadOp,
    ReadResult,
    Result,
    SessionEvent,
    SetAcl,
    SetData,
    Sync,
    Synced,
    WatchEvent,
    ZkCode,
)
from ottla.zookeeper.session import (
    CloseConnection,
    Completed,
    OpenConnection,
    Session,
    SessionConfig,
    State,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
Notification: TypeAlias = WatchEvent | SessionEvent
Listener: TypeAlias = Callable[[Notification], None]
Then: TypeAlias = Callable[[Result], None]
READS_IN_FLIGHT_MAX = 8
"""How many answers of ``read_many`` may wait in the server's memory."""


class ZooKeeperUnavailable(Exception):
    """No session could be had; the text says why and what to do about it."""


class ZooKeeperClient:
    """One client of an ensemble. All methods belong to the loop's thread.

    The listener and the ``then`` of ``submit_then`` are called in the order in which the server sent
    events and results. A future of ``submit`` resumes one iteration of the loop later.
    """

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int = 18_000,
        auth: Sequence[tuple[str, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        listener: Listener | None = None,
        renew_after_expiry: bool = True,
        seed: random.Random | None = None,
    ) -> None:
        self.ensemble = parse_connect_string(connect_string)
        config = SessionConfig(
            ensemble=self.ensemble,
            session_timeout_ms=session_timeout_ms,
            auth=tuple(auth),
            renew_after_expiry=renew_after_expiry,
        )
        self._session = Session(config, seed or random.Random())
        self._listener = listener
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._is_pumping = False
        self._waiters: list[asyncio.Future[Notification]] = []
        self._login_failure = ""
        self._address_of: Counter[Host] = Counter()

    @classmethod
    async def connect(
        cls,
        connect_string: str,
        *,
        limit_ms: int | None = None,
        refused_ms: int | None = None,
        **options: Any,
    ) -> "ZooKeeperClient":
        """A client with a session, or ``ZooKeeperUnavailable`` after the limit (the session time-out).

        ``refused_ms`` is how long it may take where every server refuses the connection.
        """
        try:
            client = cls(connect_string, **options)
        except ValueError as problem:
            raise ZooKeeperUnavailable(f"{problem}.") from None
        client.start()
        try:
            await client.wait_until_connected(limit_ms, refused_ms)
            if client._session.config.auth:
                await client.submit(Exists("/"))  # answered only after the logins
                client._raise_if_login_failed()
        except BaseException:
            await client.close(limit_ms=0)
            raise
        return client

    # ---- the session ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect; ``SessionConnected`` tells when there is a session."""
        self._session.start(self._now_ms())
        self._pump()

    async def wait_until_connected(self, limit_ms: int | None = None, refused_ms: int | None = None) -> None:
        """Return once the session is in use; ``ZooKeeperUnavailable`` says why there is none."""
        limit = self._session.config.session_timeout_ms if limit_ms is None else limit_ms
        first = limit if refused_ms is None else min(limit, refused_ms)
        if await self._is_connected_within(first):
            return
        if first < limit and not self._is_refused_everywhere():
            if await self._is_connected_within(limit - first):
                return
            first = limit
        raise ZooKeeperUnavailable(self._why_unavailable(first))

    async def _is_connected_within(self, limit_ms: int) -> bool:
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while not self.is_connected:
                    self._raise_if_login_failed()
                    await self._next_notification()
        except TimeoutError:
            return False
        return True

    def _is_refused_everywhere(self) -> bool:
        failures = self._session.ring.failures
        return all(failures.get(host) == REFUSED for host in self.ensemble.hosts)

    def _raise_if_login_failed(self) -> None:
        if self._session.state is State.AUTH_FAILED:
            raise ZooKeeperUnavailable(f"ZooKeeper at {self.ensemble}: {self._login_failure}.")

    def _next_notification(self) -> "asyncio.Future[Notification]":
        waiter: asyncio.Future[Notification] = self._loop.create_future()
        self._waiters.append(waiter)
        return waiter

    def _why_unavailable(self, limit_ms: int) -> str:
        failures = self._session.ring.failures
        reasons = "; ".join(f"{host}: {reason}" for host, reason in failures.items()) or "no answer"
        return (
            f"ZooKeeper at {self.ensemble} gave no session in {limit_ms / 1000:g} s ({reasons}); "
            "check that it runs and that zookeeper.connect names it."
        )

    @property
    def is_connected(self) -> bool:
        """Whether requests go to a server at once; otherwise they wait for one."""
        return self._session.state is State.CONNECTED

    @property
    def session_id(self) -> int:
        """The owner of our ephemeral nodes; 0 while there is no session."""
        return self._session.session_id

    @property
    def server(self) -> Host:
        """The server that we talk to, or talked to last."""
        return self._session.host

    @property
    def session_password(self) -> bytes:
        """What proves to the servers that the session is ours."""
        return self._session.password

    @property
    def session_timeout_ms(self) -> int:
        """What the servers granted."""
        return self._session.timeout_ms

    def add_auth(self, scheme: str, credential: bytes) -> None:
        """Log in: ``("digest", b"user:password")``."""
        self._session.add_auth(scheme, credential)
        self._pump()

    async def close(self, limit_ms: int = 2_000) -> None:
        """End the session, so that its ephemeral nodes vanish now and not at its time-out."""
        self._session.close(self._now_ms(), limit_ms)
        self._session.tick(self._now_ms())
        self._pump()
        while self._session.state is not State.CLOSED:
            await self._next_notification()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.gather(self._attempt, return_exceptions=True)

    # ---- operations -------------------------------------------------------------------------------

    @overload
    def submit(self, op: Create) -> asyncio.Future[Created | Failed | Lost]: ...
    @overload
    def submit(self, op: Delete) -> asyncio.Future[Deleted | Failed | Lost]: ...
    @overload
    def submit(self, op: SetData) -> asyncio.Future[DataSet | Failed | Lost]: ...
    @overload
    def submit(self, op: Check) -> asyncio.Future[Checked | Failed | Lost]: ...
    @overload
    def submit(self, op: GetData) -> asyncio.Future[Data | Failed | Lost]: ...
    @overload
    def submit(self, op: Exists) -> asyncio.Future[Found | Failed | Lost]: ...
    @overload
    def submit(self, op: GetChildren) -> asyncio.Future[Children | Failed | Lost]: ...
    @overload
    def submit(self, op: GetAcl) -> asyncio.Future[AclFound | Failed | Lost]: ...
    @overload
    def submit(self, op: SetAcl) -> asyncio.Future[AclSet | Failed | Lost]: ...
    @overload
    def submit(self, op: Sync) -> asyncio.Future[Synced | Failed | Lost]: ...
    @overload
    def submit(self, op: Multi) -> asyncio.Future[MultiDone | MultiFailed | Failed | Lost]: ...
    @overload
    def submit(self, op: MultiRead) -> asyncio.Future[MultiDone | Failed | Lost]: ...
    @overload
    def submit(self, op: Op) -> asyncio.Future[Any]: ...

    def submit(self, op: Op) -> asyncio.Future[Any]:
        """Ask; the future never raises for what ZooKeeper says, every outcome is a value."""
        future: asyncio.Future[Result] = self._loop.create_future()
        self._session.submit(op, future)
        self._pump()
        return future

    def submit_then(self, op: Op, then: Then) -> None:
        """Ask; ``then`` gets the result, in order with the watch events."""
        self._session.submit(op, then)
        self._pump()

    async def read_many(self, ops: Iterable[ReadOp], *, data_bytes: int = 200) -> list[ReadResult | Lost]:
        """Each read's result, in order; as few requests as possible, a bounded number of them at a time."""
        results: list[ReadResult | Lost] = []
        in_flight: deque[tuple[MultiRead, asyncio.Future[MultiDone | Failed | Lost]]] = deque()
        requests = deque(plan_reads(ops, data_bytes=data_bytes))
        while requests or in_flight:
            while requests and len(in_flight) < READS_IN_FLIGHT_MAX:
                request = requests.popleft()
                in_flight.append((request, self.submit(request)))
            request, future = in_flight.popleft()
            outcome = await future
            if isinstance(outcome, MultiDone):
                results += cast(tuple[ReadResult, ...], outcome.results)
            elif outcome == Failed(ZkCode.MARSHALLING_ERROR) and len(request.ops) > 1:
                for half in halves(request):
                    results += await self.read_many(
                        half.ops, data_bytes=BATCH_REPLY_BYTES_MAX // len(half.ops)
                    )
            else:
                results += [outcome] * len(request.ops)
        return results

    async def chroot_exists(self) -> bool:
        """Whether the chroot, below which all our nodes are, exists."""
        return await self.submit(Exists("/")) != Failed(ZkCode.NO_NODE)

    async def create_chroot(self) -> None:
        """Make that node and what is above it; nothing happens where it is already."""
        chroot = self.ensemble.chroot
        for path in [*parents(chroot), chroot] if chroot else []:
            while isinstance(result := await self._create_absolute(path), Lost):
                await self.wait_until_connected()
            if isinstance(result, Failed) and result.code is not ZkCode.NODE_EXISTS:
                raise ZooKeeperUnavailable(
                    f"ZooKeeper refused to make the chroot {path}: {result.code.name}."
                )

    def _create_absolute(self, path: str) -> asyncio.Future[Result]:
        future: asyncio.Future[Result] = self._loop.create_future()
        self._session.submit(Create(path), future, is_absolute=True)
        self._pump()
        return future

    # ---- driving the machine ----------------------------------------------------------------------

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _pump(self) -> None:
        """Carry out what the machine wants; a listener may submit more meanwhile."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while True:
                self._flush()
                events = self._session.events()
                if not events:
                    break
                for event in events:
                    self._perform_guarded(event)
        finally:  # A session that is not driven any more would neither live nor end.
            self._is_pumping = False
            self._set_timer()

    def _flush(self) -> None:
        connection = self._connection
        if connection is not None and connection.may_write:
            data = self._session.bytes_to_send(self._now_ms())
            if data:
                connection.write(data)

    def _perform_guarded(self, event: object) -> None:
        """A listener that fails must cost neither the connection nor the events behind it."""
        try:
            self._perform(event)
        except Exception as problem:
            self._loop.call_exception_handler(
                {"message": f"a ZooKeeper listener failed on {event}", "exception": problem}
            )

    def _perform(self, event: object) -> None:
        match event:
            case Completed(token=token, result=result):
                if isinstance(token, asyncio.Future):
                    if not token.done():
                        token.set_result(result)
                else:
                    cast(Then, token)(result)
            case OpenConnection(host=host):
                self._attempt = self._loop.create_task(self._connect_to(host))
            case CloseConnection():
                self._drop_connection()
            case _:
                self._notify(cast(Notification, event))

    def _notify(self, event: Notification) -> None:
        if not isinstance(event, WatchEvent):
            log.info("zookeeper session=%x event=%s", self._session.session_id, event)
        if isinstance(event, AuthFailed):
            self._login_failure = event.reason
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(event)
        if self._listener is not None:
            self._listener(event)

    def _drop_connection(self) -> None:
        if self._attempt is not None:
            self._attempt.cancel()
            self._attempt = None
        if self._connection is not None:
            self._connection.abandon()
            self._connection = None

    async def _connect_to(self, host: Host) -> None:
        attempt = asyncio.current_task()
        try:
            connection, number = await reach(self, host, self._tls, self._address_of[host])
        except OSError as problem:
            self._address_of[host] += 1
            if self._attempt is attempt:
                self._attempt = None
                self.on_connection_lost(None, why_unreachable(problem))
            return
        except asyncio.CancelledError:
            self._address_of[host] += 1
            raise
        self._address_of[host] = number
        if self._attempt is not attempt:
            connection.abandon()
            return
        self._attempt = None
        self._connection = connection
        self._session.connection_made(self._now_ms())
        self._pump()

    def on_bytes(self, data: bytes) -> None:
        """The connection received this."""
        self._session.receive_bytes(data, self._now_ms())
        self._pump()

    def on_connection_lost(self, connection: Connection | None, reason: str) -> None:
        """The connection broke, or could not be made."""
        if self._connection is connection:
            self._connection = None
        self._session.connection_lost(reason, self._now_ms())
        self._pump()

    def on_may_write_again(self) -> None:
        """The connection has room again."""
        self._pump()

    def _set_timer(self) -> None:
        next_ms = self._session.next_tick_ms()
        if self._timer is not None:
            if next_ms is not None and self._timer_ms <= next_ms:
                return  # it comes early enough, and sets itself anew
            self._timer.cancel()
            self._timer = None
        if next_ms is not None:
            self._timer = self._loop.call_at(next_ms / 1000, self._on_timer)
            self._timer_ms = next_ms  # uvloop's handle of a time that has passed does not tell it.

    def _on_timer(self) -> None:
        self._timer = None
        self._session.tick(self._now_ms())
        self._pump()
