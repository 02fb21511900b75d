"""Who is let in, who is not, and in which words: an Ottla broker says what an Apache broker says.

Both have the same doors and the same users, those of SCRAM by Kafka's own tool before the brokers run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.client.admin.topics import a_topic, create_topics, describe_topics
from ottla.client.aio.client import Client as AsyncClient
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig
from ottla.client.errors import LoginFailed
from ottla.client.sasl_settings import read_login
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST
from ottla.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from support.processes.apache_tools import run_apache
from support.processes.broker_process import BrokerProcess, wait_all_usable
from support.running.waiting import wait_until
from support.security import python_clients
from support.security.broker import LIFETIME_MS, Doors, client_settings, guarded_broker
from support.security.rows import (
    OF_LIFETIMES,
    OF_PLAIN,
    OF_SCRAM,
    OF_THE_SEQUENCE,
    PASSWORD,
    Row,
    plain,
    scram,
)
from support.security.talk import ByHand, Said, Talk
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

CLIENTS_SECONDS_MAX = 120
DELAY_S = 0.1
"""Kafka's default of ``connection.failed.authentication.delay.ms``."""
CLOCK_S = 0.001
"""Both brokers count whole milliseconds, so a delay may begin up to one before its first instant."""


def add_user(connect: str, user: str, *mechanisms: str) -> None:
    """As before any broker runs: Kafka's tool writes to ZooKeeper itself."""
    added = ",".join(f"{each}=[iterations=4096,password={PASSWORD}]" for each in mechanisms)
    words = ("--alter", "--add-config", added, "--entity-type", "users", "--entity-name", user)
    run = run_apache("configs", "--zookeeper", connect, *words)
    assert run.exit_code == 0, run


def add_weak_user(connect: str) -> None:
    """Kafka's tool makes none with so few iterations."""
    client = KazooClient(hosts=connect)
    client.start(timeout=15)
    try:
        carols, _ = client.get("/config/users/carol")
        client.create("/config/users/weak", carols.replace(b"iterations=4096", b"iterations=1000"))
    finally:
        client.stop()
        client.close()


@pytest.fixture(scope="module")
def doors(chroots: Chroots) -> Iterator[dict[str, Doors]]:
    """The ports of both kinds of brokers."""
    brokers: dict[str, BrokerProcess] = {}
    ports: dict[str, Doors] = {}
    try:
        for number, kind in enumerate(("apache", "ottla"), 1):
            chroot = chroots.make()
            for user, mechanisms in (
                ("carol", ["SCRAM-SHA-256"]),
                ("dave", ["SCRAM-SHA-256", "SCRAM-SHA-512"]),
                ("a,b=c", ["SCRAM-SHA-256"]),
            ):
                add_user(chroot.connect, user, *mechanisms)
            add_weak_user(chroot.connect)
            brokers[kind], ports[kind] = guarded_broker(kind, number, chroot.connect)
        for broker in brokers.values():
            broker.launch()
        for broker in brokers.values():
            wait_all_usable([broker])
        yield ports
    finally:
        for broker in brokers.values():
            broker.stop()


def said_by(port: int, row: Row) -> list[Said]:
    talk = Talk(port)
    try:
        return row(talk)
    finally:
        talk.close()


def said_by_both(ottla: int, apache: int, row: Row) -> tuple[list[Said], list[Said]]:
    """At the same time, for most of a row is waiting: whoever fails is answered late."""
    with ThreadPoolExecutor() as threads:
        ours, theirs = threads.map(said_by, (ottla, apache), (row, row))
    return ours, theirs


@pytest.mark.parametrize("name", OF_THE_SEQUENCE)
def test_the_order_of_a_login_is_kept_as_apache_keeps_it(doors: dict[str, Doors], name: str) -> None:
    ours, theirs = said_by_both(doors["ottla"].s, doors["apache"].s, OF_THE_SEQUENCE[name])

    assert ours == theirs


@pytest.mark.parametrize("name", ["handshake and login once more"])
def test_where_nobody_is_asked_a_login_is_refused_as_apache_refuses_it(
    doors: dict[str, Doors], name: str
) -> None:
    ours, theirs = said_by_both(doors["ottla"].plain, doors["apache"].plain, OF_THE_SEQUENCE[name])

    assert ours == theirs


@pytest.mark.parametrize("name", OF_PLAIN)
def test_plain_lets_in_whom_apache_lets_in(doors: dict[str, Doors], name: str) -> None:
    ours, theirs = said_by_both(doors["ottla"].s, doors["apache"].s, OF_PLAIN[name])

    assert ours == theirs


@pytest.mark.parametrize("name", OF_SCRAM)
def test_scram_lets_in_whom_apache_lets_in(doors: dict[str, Doors], name: str) -> None:
    ours, theirs = said_by_both(doors["ottla"].s, doors["apache"].s, OF_SCRAM[name])

    assert ours == theirs


@pytest.mark.parametrize("name", OF_LIFETIMES)
def test_logins_with_a_lifetime_are_renewed_as_with_apache(doors: dict[str, Doors], name: str) -> None:
    ours, theirs = said_by_both(doors["ottla"].r, doors["apache"].r, OF_LIFETIMES[name])

    assert ours == theirs
    assert ours[0][3] == LIFETIME_MS or name == "not to version 0"


@pytest.mark.parametrize("kind", ["apache", "ottla"])
def test_an_expired_login_ends_the_connection_unless_it_is_renewed(
    doors: dict[str, Doors], kind: str
) -> None:
    first, second = Talk(doors[kind].q), Talk(doors[kind].q)
    first.log_in()
    second.log_in()

    wait_until(lambda: second.metadata() == "closed the connection", "the login expires", 60)

    assert first.handshake("PLAIN")[:2] == ("handshake", 0)
    assert first.authenticate(b"\0alice\0alice-secret")[1] == 0
    assert first.fate() == ("metadata", True)
    first.close()


@pytest.mark.parametrize("kind", ["apache", "ottla"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_whoever_fails_waits(doors: dict[str, Doors], kind: str, mechanism: str) -> None:
    talk = Talk(doors[kind].s)
    talk.handshake(mechanism)

    said = talk.authenticate(b"\0alice\0wrong")

    assert said[1] == 58
    assert talk.waited_s >= DELAY_S - CLOCK_S
    talk.close()


def test_the_log_says_why_somebody_was_not_let_in_and_holds_no_password(doors: dict[str, Doors]) -> None:
    attempts: dict[str, Row] = {
        "wrong password of user 'carol'": scram("SCRAM-SHA-256", "carol", "marker-1"),
        "no SCRAM-SHA-512 credential of user 'marker-user'": scram("SCRAM-SHA-512", "marker-user"),
        "Invalid username or password": plain("\0alice\0marker-2"),
        "mechanism 'marker\\\\n-mechanism' is not enabled": lambda talk: [
            talk.handshake("marker\n-mechanism")
        ],
        "a request of type METADATA before the login": lambda talk: [talk.metadata()],
    }

    def log() -> str:
        return doors["ottla"].log_file.read_text()

    def is_told(reason: str, row: Row) -> bool:
        """A broker that turned away many just now leaves some out of its log: so it is asked again."""
        said_by(doors["ottla"].s, row)
        return reason in log()

    for reason, row in attempts.items():
        wait_until(partial(is_told, reason, row), lambda why=reason: f"{why}\n{log()[-3000:]}", 30)
    for secret in ("marker-1", "marker-2", PASSWORD, "alice-secret", "bob-secret", "stored_key"):
        assert secret not in log()


# ---- users through the APIs


def upsertion(
    name: str, mechanism: int = 1, iterations: int = 4096, password: str = "one"
) -> ScramCredentialUpsertion:
    salted = hashlib.pbkdf2_hmac(
        "sha256" if mechanism == 1 else "sha512", password.encode(), b"salt", iterations
    )
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


CHANGES: dict[str, tuple[list[ScramCredentialUpsertion], list[ScramCredentialDeletion]]] = {
    "a new user": ([upsertion("new")], []),
    "both mechanisms": ([upsertion("both"), upsertion("both", 2)], []),
    "names that znodes cannot have": ([upsertion(name) for name in ("a b", "*~/+ü", "x.y-z_0", "%41")], []),
    "an empty name": ([upsertion("")], []),
    "too few iterations": ([upsertion("few", iterations=4095)], []),
    "the most iterations": ([upsertion("most", iterations=16384)], []),
    "too many iterations": ([upsertion("many", iterations=16385)], []),
    "an unknown mechanism": ([upsertion("odd", mechanism=3)], []),
    "mechanism 0": ([upsertion("odd", mechanism=0)], []),
    "twice": ([upsertion("twice"), upsertion("twice")], []),
    "set and deleted": ([upsertion("carol")], [deletion("carol")]),
    "a missing one deleted": ([], [deletion("missing")]),
    "an unknown mechanism deleted": ([], [deletion("carol", 3)]),
    "an empty name deleted": ([], [deletion("")]),
    "one bad of two users": ([upsertion("good"), upsertion("bad", iterations=1)], []),
    "one bad of one user's": ([upsertion("half"), upsertion("half", 2, iterations=1)], []),
    "made and deleted": ([upsertion("short")], []),
    "nothing": ([], []),
}
"""In this order; some build upon those before."""
DESCRIPTIONS: dict[str, list[str] | None] = {
    "all": None,
    "all, by an empty list": [],
    "one": ["both"],
    "of names that znodes cannot have": ["*~/+ü", "a b"],
    "unknown": ["nobody"],
    "twice, and others": ["both", "both", "carol", "nobody"],
}


def test_users_are_changed_and_described_as_apache_does_it(doors: dict[str, Doors]) -> None:
    said: dict[str, list[object]] = {kind: [] for kind in doors}
    stored = {}
    for kind, ports in doors.items():
        with WireClient(f"127.0.0.1:{ports.plain}") as client:
            for name, (upsertions, deletions) in CHANGES.items():
                change = AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions)
                rows = client.ask(change, 0).results
                outcomes = sorted((row.user, row.error_code, row.error_message) for row in rows)
                said[kind].append((name, outcomes))
            gone = AlterUserScramCredentialsRequest(deletions=[deletion("short")])
            said[kind].append(("deleted", [row.error_code for row in client.ask(gone, 0).results]))
            for name, users in DESCRIPTIONS.items():
                asked = None if users is None else [UserName(name=user) for user in users]
                answer = client.ask(DescribeUserScramCredentialsRequest(users=asked), 0)
                found = [
                    (row.user, row.error_code, row.error_message, [*map(_info, row.credential_infos)])
                    for row in answer.results
                ]
                said[kind].append((name, answer.error_code, sorted(found)))
        stored[kind] = users_in(ports.connect)

    assert said["ottla"] == said["apache"]
    assert stored["ottla"] == stored["apache"]
    assert "a%20b" in stored["ottla"]
    assert "%2A%7E%2F%2B%C3%BC" in stored["ottla"]


def _info(info: CredentialInfo) -> tuple[int, int]:
    return info.mechanism, info.iterations


def users_in(connect: str) -> dict[str, dict[str, object]]:
    """The znodes of users whose salt is not by chance."""
    client = KazooClient(hosts=connect)
    client.start(timeout=15)
    try:
        names = set(client.get_children("/config/users")) - {"carol", "dave", "weak", "a%2Cb%3Dc"}
        return {name: json.loads(client.get(f"/config/users/{name}")[0]) for name in sorted(names)}
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("kind", ["apache", "ottla"])
def test_another_password_holds_for_new_connections_and_open_ones_stay(
    doors: dict[str, Doors], kind: str
) -> None:
    ports = doors[kind]
    change(ports, upsertion("grace", password="one"))
    wait_until(lambda: is_let_in(ports, "grace", "one"), "the first password holds", 30)
    open_one = let_in(ports, "grace", "one")
    assert open_one is not None

    change(ports, upsertion("grace", password="two"))

    wait_until(lambda: is_let_in(ports, "grace", "two"), "the second password holds", 30)
    assert not is_let_in(ports, "grace", "one")
    assert open_one.fate() == ("metadata", True)
    open_one.close()
    change(ports, deletion("grace"))


def change(ports: Doors, wanted: ScramCredentialUpsertion | ScramCredentialDeletion) -> None:
    is_upsertion = isinstance(wanted, ScramCredentialUpsertion)
    upsertions, deletions = ([wanted], []) if is_upsertion else ([], [wanted])
    request = AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions)
    with WireClient(f"127.0.0.1:{ports.plain}") as client:
        (row,) = client.ask(request, 0).results
        assert row.error_code == 0, row


def let_in(ports: Doors, user: str, password: str) -> Talk | None:
    """A connection that is in, with SCRAM-SHA-256."""
    talk = Talk(ports.s)
    by_hand = ByHand("SCRAM-SHA-256", user, password)
    talk.handshake("SCRAM-SHA-256")
    if talk.authenticate(by_hand.first())[1] == 0 and talk.authenticate(by_hand.final(talk.token))[1] == 0:
        return talk
    talk.close()
    return None


def is_let_in(ports: Doors, user: str, password: str) -> bool:
    talk = let_in(ports, user, password)
    if talk is not None:
        talk.close()
    return talk is not None


# ---- clients of all kinds

LOGINS = {
    "PLAIN": ("alice", "alice-secret"),
    "SCRAM-SHA-256": ("carol", PASSWORD),
    "SCRAM-SHA-512": ("dave", PASSWORD),
}


@pytest.mark.parametrize("kind", ["apache", "ottla"])
@pytest.mark.parametrize("mechanism", LOGINS)
def test_our_own_client_writes_and_reads_behind_every_mechanism(
    doors: dict[str, Doors], kind: str, mechanism: str
) -> None:
    settings = client_settings(mechanism, *LOGINS[mechanism])
    address = (("127.0.0.1", doors[kind].s),)
    config = ClientConfig(bootstrap_servers=address, login=read_login(settings))
    topic = f"own-{mechanism}"

    with Client(config) as client:
        client.run(create_topics, [a_topic(topic)])
        producer = client.producer()
        producer.wait(producer.send(topic, b"blocking"))
        producer.close()
    values = asyncio.run(written_and_read(config, topic))

    assert values == [b"blocking", b"asyncio"]


async def written_and_read(config: ClientConfig, topic: str) -> list[bytes | None]:
    async with AsyncClient(config) as client:
        producer = client.producer()
        await (await producer.send(topic, b"asyncio"))
        await producer.close()
        consumer = client.consumer()
        consumer.assign({TopicPartition(topic, 0): EARLIEST})
        values: list[bytes | None] = []
        while len(values) < 2:
            for records in (await consumer.poll(timeout_ms=1_000)).values():
                values += [record.value for record in records]
    return values


@pytest.mark.parametrize("kind", ["apache", "ottla"])
def test_our_own_client_is_told_why_it_does_not_get_in(doors: dict[str, Doors], kind: str) -> None:
    settings = client_settings("SCRAM-SHA-512", "dave", "wrong")
    config = ClientConfig(bootstrap_servers=(("127.0.0.1", doors[kind].s),), login=read_login(settings))

    with Client(config) as client, pytest.raises(LoginFailed, match="user 'dave': Authentication failed"):
        client.run(describe_topics)


@pytest.mark.parametrize("mechanism", LOGINS)
def test_javas_tools_write_and_read_behind_every_mechanism(
    doors: dict[str, Doors], mechanism: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    settings = client_settings(mechanism, *LOGINS[mechanism])
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    at = ("--bootstrap-server", f"127.0.0.1:{doors['ottla'].s}")
    topic = ("--topic", f"java-{mechanism}")

    written = run_apache("console-producer", *at, *topic, "--producer.config", str(file), stdin="a\nb\n")
    reading = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    read = run_apache("console-consumer", *at, *topic, "--consumer.config", str(file), *reading)

    assert written.exit_code == 0, written
    assert sorted(read.stdout.split()) == ["a", "b"], read


@pytest.mark.parametrize("mechanism", LOGINS)
def test_clients_in_python_write_and_read_behind_every_mechanism(
    doors: dict[str, Doors], mechanism: str
) -> None:
    topic = f"python-{mechanism}"
    address = f"127.0.0.1:{doors['ottla'].s}"
    command = [sys.executable, "-W", "ignore", python_clients.__file__]

    done = subprocess.run(
        [*command, address, mechanism, *LOGINS[mechanism], topic],
        capture_output=True,
        text=True,
        timeout=CLIENTS_SECONDS_MAX,
        check=False,
    )

    assert done.stdout.split() == ["kafka-python", "aiokafka"], done.stderr
