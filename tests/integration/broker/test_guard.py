"""A broker's guard ends the session of a dead process at once, and never that of a living one."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.server.guard.handle import WATCHER
from ottla.znodes.codec_death import Death, decode_death
from support.processes.descendants import descendants, is_alive
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroot

LASTING_MS, BRIEF_MS = 30_000, 2_000
RESIDENT_KB_MAX = 12 * 1024
BY_SIGNAL_9 = "ended by signal 9; its guard closed the session broker=1 session=0x"


class Watched:
    """One broker, its guard, and a view into their ZooKeeper."""

    def __init__(self, zookeeper: Chroot, directory: Path) -> None:
        self._zookeeper = zookeeper
        self._directory = directory
        self.kazoo = KazooClient(zookeeper.connect)
        self.kazoo.start(timeout=15)
        self.broker: OttlaBroker

    def start(self, timeout_ms: int = LASTING_MS, **settings: object) -> None:
        self.broker = OttlaBroker(
            1,
            self._zookeeper.connect,
            None,
            self._directory / "data",
            zookeeper_session_timeout_ms=timeout_ms,
            **settings,
        )
        self.broker.start()

    @property
    def is_registered(self) -> bool:
        return self.kazoo.exists("/brokers/ids/1") is not None

    @property
    def session(self) -> int:
        found = self.kazoo.exists("/brokers/ids/1")
        return 0 if found is None else int(found.ephemeralOwner)

    @property
    def guards(self) -> list[int]:
        return sorted(descendants(self.broker.pid))

    def close(self) -> None:
        self.broker.stop()
        self.kazoo.stop()
        self.kazoo.close()


@pytest.fixture
def watched(zookeeper: Chroot, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(zookeeper, tmp_path)
    yield made
    made.close()


@pytest.mark.java
def test_a_killed_broker_is_gone_at_once_and_its_guard_says_why_and_ends(watched: Watched) -> None:
    watched.start()
    pid, (guard,) = watched.broker.pid, watched.guards
    epoch = watched.kazoo.exists("/brokers/ids/1").czxid
    resident = Path(f"/proc/{guard}/status").read_text().partition("VmRSS:")[2].split()[0]

    watched.broker.kill()

    wait_until(lambda: not watched.is_registered, "the registration vanishes", 3, every=0.01)
    wait_until(lambda: not is_alive(guard), "the guard ends", 3)
    assert watched.kazoo.exists("/controller") is None
    assert f"process {pid} {BY_SIGNAL_9}" in watched.broker.log_text()
    assert int(resident) <= RESIDENT_KB_MAX
    words = f"process {pid} ended by signal 9; its guard closed the session"
    assert decode_death(watched.kazoo.get("/ottla/deaths/1")[0]) == Death(epoch, words)

    watched.broker.start()
    wait_until(lambda: watched.kazoo.exists("/ottla/deaths/1") is None, "the death is past", 10)


@pytest.mark.java
def test_a_frozen_broker_keeps_its_session_until_the_time_out_and_the_next_one_is_guarded_too(
    watched: Watched,
) -> None:
    watched.start(BRIEF_MS)
    first = watched.session
    watched.broker.pause()
    wait_until(lambda: not watched.is_registered, "the session expires", 20)
    assert "ottla.guard" not in watched.broker.log_text()

    watched.broker.resume()
    wait_until(lambda: watched.is_registered, "the broker registers again", 20)
    second = watched.session
    watched.broker.kill()

    wait_until(lambda: f"{BY_SIGNAL_9}{second:x}" in watched.broker.log_text(), "the guard ends it", 3)
    assert second != first
    assert not watched.is_registered


@pytest.mark.java
def test_a_broker_that_ends_in_order_takes_its_guard_along(watched: Watched) -> None:
    watched.start()
    (guard,) = watched.guards

    watched.broker.shut_down()

    assert not is_alive(guard)
    assert not watched.is_registered
    assert "ottla.guard" not in watched.broker.log_text()


@pytest.mark.java
def test_a_guard_ignores_what_ends_others_and_one_that_is_killed_is_replaced(watched: Watched) -> None:
    watched.start()
    (first,) = watched.guards
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(first, number)

    os.kill(first, signal.SIGKILL)

    wait_until(lambda: watched.broker.log_text().count("a guard watches") == 2, "another guard", 10)
    assert first not in watched.guards
    assert watched.broker.log_text().count("the broker has no guard") == 1
    watched.broker.kill()
    wait_until(lambda: not watched.is_registered, "the registration vanishes", 3)


@pytest.mark.java
def test_without_a_guard_the_session_outlives_its_process(watched: Watched) -> None:
    watched.start(ottla_guard_enable=False)
    assert watched.guards == []

    watched.broker.kill()

    assert watched.is_registered


# A parent that hands a session over, and does what the test asks for.
PARENT = """
import os, subprocess, sys, time
guard = subprocess.Popen([sys.executable, "-I", "-S", *sys.argv[1:2], str(os.getpid()), "", sys.argv[2]],
                         stdin=subprocess.PIPE, start_new_session=True)
os.write(guard.stdin.fileno(), sys.argv[3].encode())
print(guard.pid, flush=True)
sys.stdin.readline()
guard.stdin.close()
print("closed", flush=True)
time.sleep(600)
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.settimeout(10)
        yield listening


@contextmanager
def parent_of_a_guard(server: socket.socket, timeout_ms: int) -> "Iterator[subprocess.Popen[str]]":
    address = "{}:{}".format(*server.getsockname())
    words = [str(WATCHER), address, f"4660 {timeout_ms} 00ff 1 77 {address}\n"]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def test_a_closed_pipe_is_no_death_and_the_end_of_the_process_is(server: socket.socket) -> None:
    with parent_of_a_guard(server, LASTING_MS) as parent:
        assert parent.stdin
        assert parent.stdout
        guard = int(parent.stdout.readline())
        parent.stdin.write("close\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "closed\n"
        server.settimeout(0.5)
        with pytest.raises(TimeoutError):
            server.accept()
        assert is_alive(guard)

        parent.kill()
        server.settimeout(10)
        connection, _ = server.accept()
        asked = connection.recv(1024)

    assert (4660).to_bytes(8, "big") in asked
    assert asked.endswith(b"\x00\xff\x00")
    os.kill(guard, signal.SIGKILL)
    connection.close()


def test_without_zookeeper_the_guard_gives_up_when_the_session_must_be_over(server: socket.socket) -> None:
    with parent_of_a_guard(server, 1_000) as parent:
        assert parent.stdout
        assert parent.stderr
        guard = int(parent.stdout.readline())
        server.close()

        parent.kill()

        assert "its session lasts until its time-out: no ZooKeeper server answers" in parent.stderr.read()
    wait_until(lambda: not is_alive(guard), "the guard ends", 3)
