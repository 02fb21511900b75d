"""The broker's place in the cluster: start-up znodes, cluster id, ``/brokers/ids/<id>`` and its epoch."""

import logging
from collections.abc import Callable

from ottla.broker.outputs import EndKeptSession, Exit, KeepSession
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Pause, Steps, persistently
from ottla.model.cluster import BrokerRegistration, Endpoint
from ottla.model.ids import BrokerId, TopicId, is_usable_topic_id, topic_id_text
from ottla.storage.directories.log_dirs import LogDirs
from ottla.znodes import paths
from ottla.znodes.codec import (
    MalformedZnode,
    decode_broker,
    decode_cluster_id,
    encode_broker,
    encode_cluster_id,
)
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Children,
    Create,
    Data,
    DataSet,
    Delete,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    SetData,
    ZkCode,
)

log = logging.getLogger(__name__)

PREDECESSOR_POLL_MS = 200
SESSION_FILE = "ottla-zookeeper-session"


class StartRefused(Exception):
    """The broker cannot be a member of this cluster; the text is for the operator."""


class Registration:
    """Writes and keeps the broker's registration; the broker epoch is the czxid of its znode."""

    def __init__(self, runtime: Runtime, log_dirs: LogDirs) -> None:
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._attempt = 0
        self._owner_session = 0

    # ---- before there is a registration

    def prepare(self) -> Steps[str]:
        """Make the znodes that every broker expects, and find or choose the cluster's id."""
        for path in paths.PERSISTENT:
            yield from self._ensure(path)
        return (yield from self._cluster_id())

    def _ensure(self, path: str) -> Steps[None]:
        for each in (*paths.parents(path), path):
            result = yield from persistently(Create(each))
            if isinstance(result, Failed) and result.code is not ZkCode.NODE_EXISTS:
                raise StartRefused(f"ZooKeeper refused to create {each}: {result.code.name}")

    def _cluster_id(self) -> Steps[str]:
        while True:
            found = yield from persistently(GetData(paths.CLUSTER_ID))
            if isinstance(found, Data):
                return decode_cluster_id(found.data)
            if found.code is not ZkCode.NO_NODE:
                raise StartRefused(f"ZooKeeper does not show {paths.CLUSTER_ID}: {found.code.name}")
            yield from self._ensure(paths.CLUSTER)
            yield from persistently(Create(paths.CLUSTER_ID, encode_cluster_id(self._new_uuid_text())))

    def _new_uuid_text(self) -> str:
        while True:
            candidate = TopicId(self._runtime.random.randbytes(16))
            if is_usable_topic_id(candidate):
                return topic_id_text(candidate)

    def choose_broker_id(self) -> Steps[BrokerId]:
        """A number that no broker had before: above the reserved, by the writes to ``/brokers/seqid``."""
        while True:
            result = yield SetData(paths.BROKER_SEQUENCE_ID, None, ANY_VERSION)
            if isinstance(result, DataSet):
                return BrokerId(result.stat.version + self._runtime.config.reserved_broker_max_id)
            if isinstance(result, Failed):
                raise StartRefused(f"no broker id could be chosen: {result.code.name}")
            yield Pause(100)

    # ---- the registration

    def register(self) -> Steps[bool]:
        """Become a member under the node's id; ``StartRefused`` when another broker has it or our address.

        False when the session ended meanwhile: the next session begins again.
        """
        self._attempt += 1
        attempt = self._attempt
        yield from self._check_addresses()
        path = paths.broker(self._runtime.identity.broker_id)
        polls = 0
        while attempt == self._attempt:
            result = yield Multi((Create(path, None, ephemeral=True), SetData(path, self._encoded(), 0)))
            match result:
                case MultiDone():
                    written = result.results[1]
                    assert isinstance(written, DataSet), "a multi answers each operation by its kind"
                    self._registered(written.stat.czxid)
                    return True
                case MultiFailed(code=ZkCode.NODE_EXISTS):
                    polls += yield from self._meet_the_other(path, polls)
                    if self._owner_session == self._runtime.zk.session_id:
                        return True
                case Lost():
                    yield Pause(100)
                case _:
                    raise StartRefused(f"ZooKeeper refused the registration: {result.code.name}")
        return False

    def _meet_the_other(self, path: str, polls: int) -> Steps[int]:
        """Somebody is registered under our id: ourselves, our own past, or a stranger."""
        found = yield from persistently(GetData(path))
        if not isinstance(found, Data):
            return 0
        owner = found.stat.ephemeral_owner
        if owner == self._runtime.zk.session_id:
            self._registered(found.stat.czxid)
            return 0
        if owner == self._owner_session and self._owner_session:
            # Once: a repetition could hit the next registration, whose version is the same.
            yield Delete(path, found.stat.version)
            return 0
        self._refuse_a_stranger(found)
        if polls == 0:
            log.info(
                "waiting for the end of the last session of this broker broker=%d session=0x%x",
                self._runtime.identity.broker_id,
                owner,
            )
            # The log directory's lock is ours, so whoever wrote the file there is dead.
            self._runtime.outputs.append(EndKeptSession(self._session_file(), owner))
        if polls * PREDECESSOR_POLL_MS > self._predecessor_patience_ms():
            raise StartRefused(
                f"broker {self._runtime.identity.broker_id} is still registered with our own address after"
                f" {self._predecessor_patience_ms()} ms: another process is running it"
            )
        yield Pause(PREDECESSOR_POLL_MS)
        return 1

    def _predecessor_patience_ms(self) -> int:
        """A dead broker's session lasts at most its time-out; twice that, because it may have been longer."""
        return 2 * self._runtime.config.zookeeper.zookeeper_session_timeout_ms + 10_000

    def _refuse_a_stranger(self, found: Data) -> None:
        try:
            other = decode_broker(self._runtime.identity.broker_id, found.data, found.stat.czxid)
        except MalformedZnode:
            return
        if {_address(e) for e in other.endpoints} != {_address(e) for e in self._endpoints()}:
            where = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in other.endpoints)
            raise StartRefused(f"broker {self._runtime.identity.broker_id} is already running at {where}")

    def _check_addresses(self) -> Steps[None]:
        """Two brokers with one address would answer for each other."""
        listed = yield from persistently(GetChildren(paths.BROKER_IDS))
        names = listed.names if isinstance(listed, Children) else ()
        mine = {_address(endpoint) for endpoint in self._endpoints()}
        for name in names:
            if not name.isdecimal() or int(name) == self._runtime.identity.broker_id:
                continue
            found = yield from persistently(GetData(paths.broker(int(name))))
            if not isinstance(found, Data):
                continue
            try:
                other = decode_broker(BrokerId(int(name)), found.data, found.stat.czxid)
            except MalformedZnode:
                continue
            for endpoint in other.endpoints:
                if _address(endpoint) in mine:
                    raise StartRefused(
                        f"{endpoint.host}:{endpoint.port} is already the address of broker {name};"
                        " see advertised.listeners"
                    )

    def _endpoints(self) -> tuple[Endpoint, ...]:
        return self._runtime.config.listeners.advertised_listeners

    def _encoded(self) -> bytes:
        registration = BrokerRegistration(
            self._runtime.identity.broker_id, -1, self._endpoints(), self._runtime.config.broker_rack
        )
        return encode_broker(registration, self._runtime.clock.wall_ms())

    def _registered(self, epoch: int) -> None:
        self._runtime.identity.broker_epoch = epoch
        self._owner_session = self._runtime.zk.session_id
        broker_id = self._runtime.identity.broker_id
        self._runtime.outputs.append(KeepSession(self._session_file(), broker_id, epoch))
        self._runtime.zk.submit(Delete(paths.death(broker_id), ANY_VERSION), lambda result: None)
        log.info("registered broker=%d epoch=%d", broker_id, epoch)

    def _session_file(self) -> str:
        return f"{self._log_dirs.live_paths[0]}/{SESSION_FILE}"

    # ---- after a session expired

    def register_again(self, then: Callable[[], None]) -> None:
        """After a session expired: the same registration under a new epoch."""
        self._runtime.own.spawn(self._register_again(then))

    def _register_again(self, then: Callable[[], None]) -> Steps[None]:
        try:
            is_registered = yield from self.register()
        except StartRefused as refused:
            log.error("cannot register again broker=%d reason=%s", self._runtime.identity.broker_id, refused)
            self._runtime.outputs.append(Exit(1, str(refused)))
            return
        if is_registered:
            then()

    def on_session_expired(self) -> None:
        """The znode is gone or will be; a registration under way is void."""
        self._attempt += 1


def _address(endpoint: Endpoint) -> tuple[str, int]:
    return endpoint.host.lower(), endpoint.port
