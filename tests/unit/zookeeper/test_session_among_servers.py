"""The session among servers that lag, die and lose their quorum: what it promises holds whatever they do."""

from __future__ import annotations

from random import Random

import pytest

from ottla.zookeeper.connect_string import Host, parse_connect_string
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Children,
    Create,
    Data,
    DataSet,
    Delete,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Lost,
    Op,
    SessionConnected,
    SessionExpired,
    SetData,
    WatchEvent,
)
from ottla.zookeeper.session import (
    CloseConnection,
    Completed,
    OpenConnection,
    Session,
    SessionConfig,
    State,
)
from support.zookeeper.bytes import TIMEOUT_MS
from support.zookeeper.servers import Ensemble, Server

OTHER = 1
LENGTHS = ((12, 30), (4, 120))
"""How often the servers get well, and how many steps it takes until then."""


class Play:
    """One client that follows a node and its parent and writes to another, and chance that is against it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        names = self.chance.choice(["one", "one,two", "one,two,three"])
        config = SessionConfig(ensemble=parse_connect_string(names), session_timeout_ms=TIMEOUT_MS)
        self.ensemble = Ensemble(config.ensemble.hosts)
        assert self.ensemble.open_session() == OTHER
        for path in ("/seen", "/kept"):
            self.ensemble.write(Create(path, b"0"), OTHER)
        self.session = Session(config, Random(seed + 1))
        self.now_ms = 1_000_000
        self.opening: Host | None = None
        self.server: Server | None = None
        self.known: bytes | None = None
        self.known_children: set[str] = set()
        self.last_mzxid = 0
        self.open_tokens: dict[int, Op] = {}
        self.written: dict[int, bytes] = {}
        self.outcomes: dict[int, object] = {}
        self.next_token = 0
        self.session.start(self.now_ms)

    # ---- the client

    def submit(self, op: Op) -> int:
        self.ensemble.expect(op)
        self.next_token += 1
        self.open_tokens[self.next_token] = op
        self.session.submit(op, self.next_token)
        return self.next_token

    def follow(self) -> None:
        self.submit(GetData("/seen", watch=True))

    def follow_children(self) -> None:
        self.submit(GetChildren("/", watch=True))

    def write(self) -> None:
        value = b"w%d" % self.next_token
        self.written[self.submit(SetData("/kept", value, ANY_VERSION))] = value

    def handle(self) -> None:
        """Carry out what the machine wants, and check what it tells."""
        for event in self.session.events():
            match event:
                case OpenConnection():
                    self.opening = event.host
                case CloseConnection():
                    self.drop()
                case Completed():
                    self.completed(event)
                case WatchEvent(path="/seen"):
                    self.follow()
                case WatchEvent():
                    self.follow_children()
                case SessionConnected():
                    self.ensemble.refused_as_ahead = 0
                    if event.is_new:
                        self.last_mzxid = 0
                        self.follow()
                        self.follow_children()
                case SessionExpired():
                    is_over = event.session_id in self.ensemble.ended
                    assert is_over or self.ensemble.refused_as_ahead, "a session that lives was thrown away"
                case _:
                    pass

    def completed(self, event: Completed) -> None:
        assert isinstance(event.token, int)
        assert event.token in self.open_tokens, "an operation ends once"
        op = self.open_tokens.pop(event.token)
        self.outcomes[event.token] = event.result
        match op, event.result:
            case GetData(), Data(data=data, stat=stat):
                assert stat.mzxid >= self.last_mzxid, "what was seen is never unseen"
                self.last_mzxid = stat.mzxid
                self.known = data
            case GetData(), Failed():
                self.submit(Exists("/seen", watch=True))
                self.known = None
            case Exists(), Found():
                self.follow()
            case GetChildren(), Children(names=names):
                self.known_children = set(names)
            case _:
                pass

    # ---- the world

    def drop(self) -> None:
        self.opening = None
        if self.server is not None:
            self.server.hang_up()
        self.server = None

    def connect(self) -> None:
        if self.opening is None:
            return
        server = self.ensemble.servers[self.opening]
        self.opening = None
        if server.is_down:
            self.session.connection_lost("refused", self.now_ms)
        else:
            server.accept()
            self.server = server
            self.session.connection_made(self.now_ms)

    def exchange(self) -> None:
        """Some of the bytes arrive, in both directions."""
        server = self.server
        if server is None:
            return
        server.receive(self.session.bytes_to_send(self.now_ms))
        for _ in range(self.chance.randint(0, 4)):
            if server.outgoing and self.server is server:
                self.session.receive_bytes(server.outgoing.popleft(), self.now_ms)
                self.handle()
        if server.is_hung_up and self.server is server:
            self.cut()

    def cut(self) -> None:
        if self.server is not None:
            self.drop()
            self.session.connection_lost("cut", self.now_ms)

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.session.tick(self.now_ms)

    def others_write(self) -> None:
        tree = self.ensemble.newest()
        ops: list[Op] = [SetData("/seen", b"%d" % len(self.ensemble.history), ANY_VERSION)]
        ops.append(Delete("/seen", ANY_VERSION) if "/seen" in tree.nodes else Create("/seen", b"again"))
        self.ensemble.write(self.chance.choice([ops[0], ops[0], ops[1]]), OTHER)

    def step(self) -> None:
        ensemble, chance = self.ensemble, self.chance
        server = chance.choice(list(ensemble.servers.values()))
        match chance.choice("cccceeeeeeeewooolttdqxkrr"):
            case "c":
                self.connect()
            case "e":
                self.exchange()
            case "w":
                self.write()
            case "o":
                self.others_write()
            case "l":
                server.catch_up(chance.randint(server.position, len(ensemble.history)))
            case "t":
                self.pass_time(chance.choice([1, 50, 500, 3_000]))
            case "d":
                server.is_down = not server.is_down
                if server.is_down and server is self.server:
                    self.cut()
            case "q":
                ensemble.has_quorum = not ensemble.has_quorum
            case "x" if chance.random() < 0.1 and self.session.session_id:
                ensemble.end_session(self.session.session_id)
            case "k":
                self.cut()
            case _:
                self.submit(chance.choice([GetChildren("/"), GetData("/seen")]))
        self.handle()

    def heal(self) -> None:
        self.ensemble.has_quorum = True
        for server in self.ensemble.servers.values():
            server.is_down = False
        quiet = 0
        for _ in range(500):
            for server in self.ensemble.servers.values():
                server.catch_up()
            self.connect()
            self.exchange()
            self.handle()
            is_done = self.session.state is State.CONNECTED and not self.open_tokens
            quiet = quiet + 1 if is_done and self.server is not None and not self.server.outgoing else 0
            if quiet == 5:
                return
            self.pass_time(50)
        raise AssertionError(f"it never comes to rest: {self.session.state}")

    def check(self) -> None:
        """All is as it should be once the servers are well."""
        newest = self.ensemble.newest()
        seen = newest.nodes.get("/seen")
        assert self.known == (None if seen is None else seen.data), "an event was lost"
        assert self.known_children == set(newest.nodes["/"].children), "an event was lost"
        applied = [op.data for _, _, op in self.ensemble.history if isinstance(op, SetData)]
        for token, value in self.written.items():
            outcome = self.outcomes[token]
            if isinstance(outcome, Lost):
                assert applied.count(value) <= int(outcome.maybe_applied)
            else:
                assert isinstance(outcome, DataSet)
                assert applied.count(value) == 1


@pytest.mark.parametrize("seed", range(300))
def test_nothing_is_lost_told_twice_or_unseen_whatever_the_servers_do(seed: int) -> None:
    play = Play(seed)
    rounds, steps = LENGTHS[seed % len(LENGTHS)]
    for _ in range(rounds):
        for _ in range(steps):
            play.step()
        play.heal()
        play.check()
