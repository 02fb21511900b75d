"""The keeper as a process, as people and clients meet it: started, refused, asked, full, stopped."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper_files import LOCK_NAME
from ottla.launch.zookeeper_probe import four_letter_word
from ottla.server.keeper.app import APACHE_LOCK
from support.running.waiting import wait_until
from support.zookeeper.keeper import KeeperProcess
from support.zookeeper.raw import CREATE, GET_DATA, RawClient, SocketWire, create, integer, text

COMMAND = [sys.executable, "-m", "ottla.cli.main", "keeper"]


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[KeeperProcess]:
    with KeeperProcess(tmp_path / "data") as process:
        yield process


def refusal(*words: str) -> str:
    """The one sentence with which the command ends."""
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    words = ["--port", "0", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("keeper listening on 127.0.0.1:")
        port = int(said.split()[3].rstrip(",").partition(":")[2])
        client = KazooClient(f"127.0.0.1:{port}")
        client.start()
        client.create("/a", b"kept")
        client.stop()
        client.close()

        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=20) == 0


def test_a_file_with_the_settings_of_apaches_server_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text(
        f"dataDir={tmp_path}/data\nclientPort=0\ntickTime=100\nautopurge.purgeInterval=1\n"
        "maxClientCnxns=2\n4lw.commands.whitelist=conf\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [*COMMAND, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        port = int(process.stdout.readline().split()[3].rstrip(",").partition(":")[2])
        settings = four_letter_word("127.0.0.1", port, "conf")
        process.terminate()
        ignored = process.stderr.readline()

    assert {"tickTime=100", "maxClientCnxns=2", "minSessionTimeout=200"} <= set(settings.splitlines())
    assert ignored == "autopurge.purgeInterval means nothing to the built-in keeper and is ignored\n"


def test_an_address_that_others_could_reach_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPortAddress=0.0.0.0\n", encoding="utf-8")

    said = refusal(str(file), "--data-dir", str(tmp_path / "data"))

    assert "does not listen on 0.0.0.0" in said
    assert "run an ensemble" in said


def test_an_ensemble_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("server.1=a:1:2\n", encoding="utf-8")

    assert "one server" in refusal(str(file))


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        said = refusal("--port", str(port), "--data-dir", str(tmp_path / "data"))

    assert f"127.0.0.1:{port} cannot be listened on" in said
    assert "--port" in said


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")

    assert "choose another --data-dir" in refusal("--port", "0", "--data-dir", str(tmp_path / "file"))


def test_two_keepers_never_share_a_directory(keeper: KeeperProcess) -> None:
    said = refusal("--port", "0", "--data-dir", str(keeper.data_dir))

    assert f"process {keeper.pid} started" in said


def test_apaches_server_and_a_keeper_never_share_a_directory(keeper: KeeperProcess, tmp_path: Path) -> None:
    assert APACHE_LOCK == LOCK_NAME

    with pytest.raises(LaunchRefused, match="is in use"):
        EmbeddedZooKeeper(keeper.data_dir).start()

    with EmbeddedZooKeeper(tmp_path / "apache") as apache:
        assert "is in use" in refusal("--port", "0", "--data-dir", str(apache.data_dir))


def test_a_foreign_file_is_refused_by_its_name(tmp_path: Path) -> None:
    version = tmp_path / "data" / "version-2"
    version.mkdir(parents=True)
    (version / "log.1").write_bytes(b"this is no log of a ZooKeeper server")

    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"))

    assert str(version) in said


def written_by_a_keeper(data_dir: Path, count: int = 30) -> None:
    """A directory with that many nodes, each synced alone, and its only log."""
    with KeeperProcess(data_dir, sync=True) as keeper:
        client = RawClient(SocketWire(keeper.port))
        assert client.connect()
        for number in range(count):
            answer = client.ask(CREATE, create(f"/n{number}", b"x" * 100))
            assert answer is not None
            assert answer.code == 0
        client.wire.close()


def test_a_log_that_is_damaged_in_its_midst_is_refused_by_its_name_and_left_alone(tmp_path: Path) -> None:
    written_by_a_keeper(tmp_path / "data")
    [log] = (tmp_path / "data" / "version-2").glob("log.*")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)

    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"))

    assert f"{log} is damaged at " in said
    assert "restore the directory from a copy, or move it away to start empty" in said
    assert log.read_bytes() == content


def test_a_directory_without_its_snapshots_is_refused(tmp_path: Path) -> None:
    written_by_a_keeper(tmp_path / "data")
    for snapshot in (tmp_path / "data" / "version-2").glob("snapshot.*"):
        snapshot.unlink()

    said = refusal("--port", "0", "--data-dir", str(tmp_path / "data"))

    assert "it has logs and no snapshot" in said


def test_a_disk_that_takes_no_more_ends_it_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    keeper = KeeperProcess(tmp_path / "data", sync=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        keeper.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    client, answered = RawClient(SocketWire(keeper.port)), 0
    assert client.connect()
    while client.ask(CREATE, create(f"/n{answered}", b"x" * 4_000)) is not None:
        answered += 1
    client.wire.close()

    wait_until(lambda: keeper.exit_code() is not None, "the keeper ends")

    assert keeper.exit_code() == 1
    keeper.stop()
    said = keeper.output.read_text(encoding="utf-8")
    assert f"the keeper ends: it cannot write to {tmp_path / 'data'}" in said
    assert "free some space, then start the keeper again; all that it answered is there" in said
    assert answered > 5
    with KeeperProcess(tmp_path / "data") as again:
        reader = RawClient(SocketWire(again.port))
        assert reader.connect()
        for number in range(answered):
            answer = reader.ask(GET_DATA, text(f"/n{number}") + b"\0")
            assert answer is not None
            assert answer.code == 0
        reader.wire.close()


def test_an_address_has_sixty_connections_at_most(keeper: KeeperProcess) -> None:
    wires = [SocketWire(keeper.port) for _ in range(60)]
    try:
        assert all(RawClient(wire).connect() for wire in wires)
        one_more = SocketWire(keeper.port)
        wires.append(one_more)

        assert not RawClient(one_more).connect()

        wires[0].close()
        while not RawClient(again := SocketWire(keeper.port)).connect():
            again.close()
        wires.append(again)
    finally:
        for wire in wires:
            wire.close()


def test_srvr_alone_is_answered_by_default(keeper: KeeperProcess) -> None:
    assert "Mode: standalone" in four_letter_word("127.0.0.1", keeper.port, "srvr")
    assert "not in the whitelist" in four_letter_word("127.0.0.1", keeper.port, "mntr")


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, integer(2**31 - 1), integer(0), integer(5) + b"12345"],
    ids=["http", "ones", "huge", "empty", "short"],
)
def test_wrong_bytes_end_their_connection_alone(keeper: KeeperProcess, sent: bytes) -> None:
    wires = [SocketWire(keeper.port), SocketWire(keeper.port)]
    try:
        bystander = RawClient(wires[0])
        assert bystander.connect()

        wires[1].send(sent)

        assert wires[1].frame() is None
        assert bystander.ping() is not None
    finally:
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("asked", [6, 1_000])
def test_a_client_that_reads_late_costs_no_more_than_its_buffer(keeper: KeeperProcess, asked: int) -> None:
    wires = [SocketWire(keeper.port), SocketWire(keeper.port)]
    try:
        greedy, other = (RawClient(wire) for wire in wires)
        assert greedy.connect()
        assert other.connect()
        greedy.ask(CREATE, create("/big", bytes(900_000)))
        body = integer(1) + integer(GET_DATA) + text("/big") + b"\0"
        wires[0].send((integer(len(body)) + body) * asked)

        for _ in range(20):
            assert other.ask(GET_DATA, text("/big") + b"\0") is not None

        pages = int(Path(f"/proc/{keeper.pid}/statm").read_text(encoding="ascii").split()[1])
        assert pages * os.sysconf("SC_PAGESIZE") < 200 * 2**20
        for _ in range(asked):
            assert greedy.wire.frame() is not None
        assert greedy.ping() is not None, "it is read from again"
    finally:
        for wire in wires:
            wire.close()


def test_more_clients_than_the_usual_limit_of_open_files_do_not_end_it(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    own = max(map(int, os.listdir("/proc/self/fd")))  # Other tests of this process may have servers open.
    keeper = KeeperProcess(tmp_path / "data", "--snapshot-every", "5", "--connections-per-address", "0")
    resource.setrlimit(resource.RLIMIT_NOFILE, (own + 32, hard))
    try:
        keeper.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    clients: list[RawClient] = []
    try:
        for _ in range(own + 40):
            client = RawClient(SocketWire(keeper.port))
            clients.append(client)
            assert client.connect()  # A txn each, and so a new log and a snapshot for every fifth.
    finally:
        for client in clients:
            client.wire.close()
        keeper.stop()
