"""Every command when something is wrong: a sentence with cause and remedy, and nothing half done."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ottla.cli.main import COMMANDS
from ottla.launch.cluster import Cluster
from support.processes.commands import Ran, Run, ottla_command, run_command, run_here
from support.processes.ports import free_port
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.java, pytest.mark.slow]

PLAN = '{"version": 1, "partitions": [{"topic": "nowhere", "partition": 0, "replicas": [0, 1], "offset": 1}]}'
ONE = ("--topic", "nowhere", "--partition", "0")

AT_A_CLUSTER: dict[str, tuple[str, ...]] = {
    "describe": ("describe",),
    "explain": ("explain", "nowhere-0"),
    "watch": ("watch", "--times", "1"),
    "topics": ("topics", "--describe", "--topic", "nowhere"),
    "leader-election": ("leader-election", "--election-type", "preferred", *ONE),
    "preferred-replica-election": ("preferred-replica-election", "--path-to-json-file", "PLAN"),
    "console-producer": ("console-producer", "--topic", "nowhere", "--max-block-ms", "500"),
    "console-consumer": ("console-consumer", "--topic", "nowhere", "--from-beginning"),
    "consumer-groups": ("consumer-groups", "--describe", "--group", "nobody"),
    "get-offsets": ("get-offsets", "--topic", "nowhere"),
    "configs": ("configs", "--describe", "--topic", "nowhere"),
    "reassign-partitions": ("reassign-partitions", "--execute", "--reassignment-json-file", "PLAN"),
    "drain": ("drain", "7"),
    "delete-records": ("delete-records", "--offset-json-file", "PLAN"),
    "log-dirs": ("log-dirs", "--describe", "--topic-list", "nowhere"),
    "replica-verification": ("replica-verification", "--topics-include", "nowhere", "--once"),
    "perf": ("perf", "consume", "--topic", "nowhere", "--messages", "1"),
    "cluster-id": ("cluster-id",),
    "broker-api-versions": ("broker-api-versions",),
    "transactions": ("transactions", "describe", "--transactional-id", "nobody"),
    "acls": ("acls", "--list", "--topic", "nowhere"),
    "users": ("users", "remove", "nobody"),
}
"""A call of every command that talks to brokers: of something that is not there, if it names anything."""

AT_ZOOKEEPER: dict[str, tuple[str, ...]] = {
    "zookeeper-shell": ("zookeeper-shell", "ADDRESS", "get", "/nowhere"),
    "preferred-replica-election": ("preferred-replica-election", "--zookeeper", "ADDRESS"),
    "describe": ("describe", "--zookeeper", "ADDRESS"),
}

ON_THIS_MACHINE: dict[str, tuple[str, ...]] = {
    "status": ("status", "--data-dir", "EMPTY"),
    "down": ("down", "--data-dir", "EMPTY"),
    "kill": ("kill", "0", "--data-dir", "EMPTY"),
    "pause": ("pause", "0", "--data-dir", "EMPTY"),
    "resume": ("resume", "0", "--data-dir", "EMPTY"),
    "restart": ("restart", "0", "--data-dir", "EMPTY"),
    "up": ("up", "--data-dir", "FILE"),
    "zookeeper": ("zookeeper", "--data-dir", "FILE"),
    "keeper": ("keeper", "--data-dir", "FILE"),
    "broker": ("broker", "MISSING"),
    "dump-log": ("dump-log", "--files", "MISSING"),
    "kafka-scripts": ("kafka-scripts", "FILE"),
    "console": ("console", "--port", "0", "--token-file", "EMPTY"),
}
NEEDS_NOTHING = {"drill", "doctor", "sim", "pipeline"}
"""Wrong flags are all that can be wrong with them here."""

LOOKS = ("describe", "watch", "cluster-id", "broker-api-versions")


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    """Topics are made when they are asked for, and not by a slip of the keyboard."""
    settings = {
        "auto.create.topics.enable": "false",
        "default.replication.factor": "2",
        "offsets.topic.num.partitions": "3",
    }
    with Cluster(brokers=3, settings=settings, zookeeper=chroots.make().connect) as running:
        yield running


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    """Files for the placeholders."""
    plan, file, binary = tmp_path / "plan.json", tmp_path / "file", tmp_path / "binary"
    plan.write_text(PLAN)
    file.write_text("a file")
    binary.write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    missing = tmp_path / "missing" / "00000000000000000000.log"
    places = {"PLAN": plan, "FILE": file, "BINARY": binary, "EMPTY": tmp_path / "empty", "MISSING": missing}
    return {name: str(path) for name, path in places.items()}


def filled(call: tuple[str, ...], words: dict[str, str]) -> tuple[str, ...]:
    return tuple(words.get(word, word) for word in call)


def run(*call: str) -> Ran:
    """A server becomes another program: not in this process."""
    return run_command(*call) if call[0] in ("broker", "keeper") else run_here(*call)


def assert_refused(ran: Ran, code: int = 1) -> None:
    """One sentence on standard error, long enough to help, and no trace of Python."""
    assert ran.exit_code == code, (ran.exit_code, ran.stdout, ran.stderr)
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("ottla: " if code == 1 else ("ottla: ", "Error: ")), ran.stderr
    assert len(last) > 25
    assert "Traceback" not in ran.stderr
    assert "object at 0x" not in ran.stderr


def test_every_command_is_in_the_tables() -> None:
    assert {*AT_A_CLUSTER, *AT_ZOOKEEPER, *ON_THIS_MACHINE, *NEEDS_NOTHING} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_flag_is_a_usage_error(command: str) -> None:
    assert_refused(run_here(command, "--no-such-flag"), 2)


@pytest.mark.parametrize("command", ON_THIS_MACHINE)
def test_what_is_not_on_this_machine_is_told(command: str, words: dict[str, str]) -> None:
    assert_refused(run(*filled(ON_THIS_MACHINE[command], words)))


@pytest.mark.parametrize("command", AT_A_CLUSTER)
def test_no_cluster_is_told_with_what_to_do(command: str, words: dict[str, str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    ran = run_here(*filled(AT_A_CLUSTER[command], words), "--bootstrap-server", address)

    assert_refused(ran)
    assert f"no broker answers at {address} " in ran.stderr
    assert "`ottla up`" in ran.stderr


@pytest.mark.parametrize("command", AT_ZOOKEEPER)
def test_no_zookeeper_is_told_soon(command: str, words: dict[str, str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    ran = run_here(*filled(AT_ZOOKEEPER[command], {**words, "ADDRESS": address}))

    assert_refused(ran)
    assert f"{address} gave no session in 1 s ({address}: connection refused)" in ran.stderr


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections and never answers; whoever connects gets Ctrl-C."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def interrupt() -> None:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with closing(connection):
                connection.recv(1)
                os.kill(os.getpid(), signal.SIGINT)
                connection.recv(1 << 16)

        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        # Whoever started the tests in the background has Ctrl-C ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            signal.signal(signal.SIGINT, before)
    thread.join(10)


@pytest.mark.parametrize("command", AT_A_CLUSTER)
def test_ctrl_c_while_it_waits_ends_it(command: str, words: dict[str, str]) -> None:
    with silent_server() as address:
        ran = run_here(*filled(AT_A_CLUSTER[command], words), "--bootstrap-server", address)

    assert ran.exit_code == 130
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_narrow_terminal_breaks_nothing(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    ran = run_here(command, "--help")

    assert ran.exit_code == 0
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_words_that_are_no_text_are_refused(command: str) -> None:
    assert_refused(run_here(command, os.fsdecode(b"\xff\xfe")), 2)


def test_files_that_are_no_text_are_refused(ottla: Run, words: dict[str, str]) -> None:
    binary = words["BINARY"]

    assert_refused(ottla("delete-records", "--offset-json-file", binary))
    assert_refused(ottla("topics", "--list", "--command-config", binary))
    assert_refused(run("broker", binary))


@pytest.mark.parametrize("command", [name for name in AT_A_CLUSTER if name not in LOOKS])
def test_what_is_not_there_is_told_and_not_made(
    cluster: Cluster, done: Run, command: str, words: dict[str, str]
) -> None:
    name, *args = filled(AT_A_CLUSTER[command], words)
    if command == "console-producer":
        args += ["--producer-property", "delivery.timeout.ms=1500"]
    address = ("--bootstrap-server", cluster.bootstrap_servers)
    ran = (
        run_here(name, *args, *address) if command != "console-producer" else produced(name, *args, *address)
    )

    assert_refused(ran)
    assert "nowhere" not in done("topics", "--list").lines


def produced(*call: str) -> Ran:
    """The producer with a line on its standard input, and no topics made on the way."""
    done = subprocess.run(
        ottla_command(*call), input=b"x\n", capture_output=True, timeout=60, check=False, env=os.environ
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), done.stdout)


def test_bytes_that_are_no_text_are_written_and_read_as_they_are(done: Run) -> None:
    done("topics", "--create", "--topic", "bytes", "--replica-assignment", "0:1")
    done("console-producer", "--topic", "bytes", stdin=b"\xff\xfe\x00\n")

    read = done("console-consumer", "--topic", "bytes", "--from-beginning", "--max-messages", "1")

    assert read.raw == b"\xff\xfe\x00\n"


LONG = {
    "console-consumer": ("--topic", "endless"),
    "console-consumer in a group": ("--topic", "endless", "--group", "endless"),
    "watch": (),
    "replica-verification": ("--topics-include", "endless"),
    "perf produce": (
        "--topic", "endless", "--num-records", "1000000", "--record-size", "9", "--throughput", "9",
    ),
    "perf consume": ("--topic", "endless", "--messages", "1000000", "--timeout", "600000"),
}  # fmt: skip


@pytest.fixture(scope="module")
def endless(done: Run) -> None:
    """A topic that nothing is written to."""
    done("topics", "--create", "--topic", "endless", "--replica-assignment", "0:1")


def started(cluster: Cluster, call: str, stdout: int) -> subprocess.Popen[bytes]:
    words = call.removesuffix(" in a group").split()
    args = (*words, "--bootstrap-server", cluster.bootstrap_servers, *LONG[call])
    return subprocess.Popen(
        [*ottla_command()[:1], "-X", "faulthandler", *ottla_command(*args)[1:]],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def has_reached(cluster: Cluster, process: subprocess.Popen[bytes]) -> bool:
    """Whether a process is connected to a broker."""
    ports = {int(broker.address.rpartition(":")[2]) for broker in cluster.brokers}
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        columns = line.split()
        if int(columns[2].rpartition(":")[2], 16) in ports:
            inodes.add(f"socket:[{columns[9]}]")
    return any(target_of(link) in inodes for link in Path(f"/proc/{process.pid}/fd").iterdir())


def target_of(link: Path) -> str:
    """What a descriptor is; a process that starts closes some between the list and the look."""
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""


@pytest.mark.usefixtures("endless")
def test_ctrl_c_ends_what_would_never_end(cluster: Cluster) -> None:
    running = {call: started(cluster, call, subprocess.DEVNULL) for call in LONG}
    for call, process in running.items():
        wait_until(lambda p=process: has_reached(cluster, p), f"{call} has reached the cluster", 90)  # type: ignore[misc]
    ended = {}
    for call, process in running.items():
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
        ended[call] = (process.returncode, b"Traceback" in errors)

    assert ended == dict.fromkeys(LONG, (130, False))


@pytest.mark.usefixtures("endless")
def test_a_reader_that_is_gone_ends_the_command(cluster: Cluster) -> None:
    calls = [call for call in LONG if "perf" not in call]
    running = {}
    for call in calls:
        read, write = os.pipe()
        running[call] = started(cluster, call, write)
        os.close(write)
        os.close(read)
    ended = {}
    for call, process in running.items():
        _, errors = process.communicate(timeout=90)
        ended[call] = b"Traceback" in errors or b"Exception ignored" in errors

    assert ended == dict.fromkeys(calls, False)


def test_watch_ends_when_its_reader_has_seen_enough_though_nothing_happens(cluster: Cluster) -> None:
    process = started(cluster, "watch", subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=90)

    assert first.startswith(b"cluster ")
    assert errors == b""


def test_a_dead_broker_is_no_reason_not_to_look(cluster: Cluster, ottla: Run, done: Run) -> None:
    done("topics", "--create", "--topic", "orphan", "--replica-assignment", "2")
    dead = cluster.brokers[2]
    cluster.brokers[2].kill()
    try:
        seen = {name: ottla(*AT_A_CLUSTER[name]) for name in LOOKS}
        wait_until(lambda: "not alive" in done("describe").stdout, "the death is noticed", 30)
        listed = done("topics", "--describe", "--unavailable-partitions").stdout
        alone = run_here("topics", "--list", "--bootstrap-server", dead.address)
        orphan = [
            ottla("get-offsets", "--topic", "orphan"),
            ottla("log-dirs", "--describe", "--broker-list", "2"),
            ottla("replica-verification", "--topics-include", "orphan", "--once"),
            ottla("leader-election", "--election-type", "preferred", "--topic", "orphan", "--partition", "0"),
        ]
    finally:
        cluster.start_broker(2)

    assert {name: ran.exit_code for name, ran in seen.items()} == dict.fromkeys(LOOKS, 0)
    assert "Topic: orphan\tPartition: 0\tLeader: none" in listed
    assert_refused(alone)
    for ran in orphan[1:]:
        assert_refused(ran)
    assert (orphan[0].stdout, "it has no leader" in orphan[0].stderr) == ("", True)
