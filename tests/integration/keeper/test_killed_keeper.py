"""A keeper that is killed under load: whatever it answered is there when it starts again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from support.keeper.apache import apache
from support.zookeeper.keeper import KeeperProcess

WRITERS = 3
SESSION_S = 60.0


class Writer:
    """A client that goes on writing through every death, and knows what was answered."""

    def __init__(self, connect: str, number: int) -> None:
        self.home = f"/writer-{number}"
        self.made: set[str] = set()
        self.pair = 0
        """The last number that a multi wrote to both halves of a pair."""
        self._count = 0
        self._is_ended = threading.Event()
        self.client = KazooClient(connect, timeout=SESSION_S)
        self.client.start(timeout=SESSION_S)
        self.session = self.client.client_id[0]
        for name in ("", "/left", "/right"):
            self.client.create(self.home + name, b"0")
        self.client.create(f"{self.home}-lives", ephemeral=True)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended.is_set():
            self._count += 1
            try:
                self._write(self._count)
            except (KazooException, KazooTimeoutError):
                self._is_ended.wait(0.01)

    def _write(self, number: int) -> None:
        path = f"{self.home}/n-{number}"
        self.client.create(path, str(number).encode())
        self.made.add(path)
        multi = self.client.transaction()
        for half in ("left", "right"):
            multi.set_data(f"{self.home}/{half}", str(number).encode())
        if not any(isinstance(result, Exception) for result in multi.commit()):
            self.pair = number

    def promise(self) -> tuple[set[str], int]:
        """What must be there from now on."""
        return set(self.made), self.pair

    def end(self) -> None:
        self._is_ended.set()
        self._thread.join()

    def check(self, promise: tuple[set[str], int], looker: KazooClient) -> None:
        made, pair = promise
        seen = {f"{self.home}/{name}" for name in looker.get_children(self.home)}
        assert made - seen == set(), "answered, and gone"
        assert all(looker.get(path)[0] == path.rpartition("-")[2].encode() for path in sorted(made)[-20:])
        assert self._settled_pair(looker) >= pair, "answered, and gone"
        lives = looker.exists(f"{self.home}-lives")
        assert lives is not None, "the session is over"
        assert lives.owner_session_id == self.session

    def _settled_pair(self, looker: KazooClient) -> int:
        """What both halves of the pair have; the writer may be at work meanwhile."""
        while True:
            left, before = looker.get(f"{self.home}/left")
            right, other = looker.get(f"{self.home}/right")
            if looker.exists(f"{self.home}/left").mzxid == before.mzxid:
                assert (left, before.mzxid) == (right, other.mzxid), "half of a multi"
                return int(left)


@contextmanager
def a_looker(connect: str) -> Iterator[KazooClient]:
    client = KazooClient(connect, timeout=SESSION_S)
    client.start(timeout=SESSION_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def check_all(connect: str, writers: list[Writer], promises: list[tuple[set[str], int]]) -> None:
    with a_looker(connect) as looker:
        for writer, promise in zip(writers, promises, strict=True):
            writer.check(promise, looker)


def test_everything_answered_survives_kill_9_under_load(tmp_path: Path, long_form: bool) -> None:
    random = Random(1)
    data = tmp_path / "data"
    keeper = KeeperProcess(data, "--snapshot-every", "300", sync=True).start()
    writers = [Writer(keeper.connect, number) for number in range(WRITERS)]
    try:
        for _ in range(50 if long_form else 5):
            time.sleep(random.uniform(0.05, 0.6))  # a random moment is what the test is about
            promises = [writer.promise() for writer in writers]
            keeper.kill()
            keeper.start()
            check_all(keeper.connect, writers, promises)
    finally:
        for writer in writers:
            writer.end()
    promises = [writer.promise() for writer in writers]
    keeper.kill()
    assert sum(len(made) for made, _ in promises) > 100, "there was load"
    with apache("3.9", data) as server:
        check_all(server.connect, writers, promises)
    for writer in writers:
        writer.client.stop()
        writer.client.close()
