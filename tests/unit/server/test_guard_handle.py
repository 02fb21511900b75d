"""The broker's side of its guard."""

import asyncio
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.server.guard import handle
from ottla.server.guard.handle import GuardHandle
from ottla.zookeeper.connect_string import Host, parse_connect_string

PIPE_BYTES = 64 * 1024


def test_a_guard_that_reads_nothing_does_not_hold_up_its_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import time; time.sleep(600)")
    monkeypatch.setattr(handle, "WATCHER", deaf)
    watched = SimpleNamespace(add_reader=lambda *_: None, remove_reader=lambda *_: None)
    guard = GuardHandle(cast(asyncio.AbstractEventLoop, watched), parse_connect_string("127.0.0.1:1"))
    session: Any = SimpleNamespace(
        session_id=7, session_timeout_ms=6_000, session_password=bytes(16), server=Host("127.0.0.1", 1)
    )
    guard.start()
    process = guard._process
    assert process is not None

    def tell_much() -> None:
        for epoch in range(PIPE_BYTES // 20):
            guard.hand_over(session, 1, epoch)

    telling = Thread(target=tell_much, daemon=True)
    telling.start()
    telling.join(30)
    is_held_up = telling.is_alive()
    process.kill()
    telling.join()
    guard.dismiss()

    assert not is_held_up
