"""The edge's small parts: ticks, threads, limits of logging, kept sessions."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from ottla.broker.runtime.log_limit import LINES_PER_WINDOW, WINDOW_SECONDS, LogLimit
from ottla.server.guard.kept_session import keep_session, read_kept_session
from ottla.server.timers import SystemClock, Ticker
from ottla.server.worker import Worker


def test_a_storm_of_events_is_a_few_lines_and_a_count() -> None:
    now = [0.0]
    limit = LogLimit(lambda: now[0])

    said = [limit.take() for _ in range(LINES_PER_WINDOW + 30)]
    now[0] += WINDOW_SECONDS

    assert said.count(None) == 30
    assert limit.take() == 30
    assert limit.take() == 0


def test_the_ticker_fires_at_the_nearest_deadline_once() -> None:
    async def scenario() -> list[str]:
        clock = SystemClock()
        ticks: list[str] = []
        done = asyncio.Event()

        def tick() -> None:
            ticks.append("tick")
            done.set()

        ticker = Ticker(asyncio.get_running_loop(), clock, tick)
        ticker.aim(clock.monotonic_ms() + 60_000)
        ticker.aim(clock.monotonic_ms() + 1)
        ticker.aim(clock.monotonic_ms() + 30_000)
        ticker.aim(None)
        async with asyncio.timeout(10):
            await done.wait()
        ticker.stop()
        return ticks

    assert asyncio.run(scenario()) == ["tick"]


def test_work_runs_off_the_loop_and_comes_back_on_it_errors_too() -> None:
    async def scenario() -> dict[int, Any]:
        outcomes: dict[int, Any] = {}
        done = asyncio.Event()
        main = threading.get_ident()

        def report(token: int, outcome: Any) -> None:
            assert threading.get_ident() == main
            outcomes[token] = outcome
            if len(outcomes) == 2:
                done.set()

        worker = Worker(asyncio.get_running_loop(), report)
        worker.run(1, lambda: threading.get_ident() != main)
        worker.run(2, lambda: 1 // 0)
        async with asyncio.timeout(10):
            await done.wait()
        worker.stop()
        return outcomes

    outcomes = asyncio.run(scenario())

    assert outcomes[1] is True
    assert isinstance(outcomes[2], ZeroDivisionError)


def test_a_kept_session_is_read_back_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "session"

    keep_session(file, 0x1234, b"\x00\xffsecret")

    assert read_kept_session(file) == (0x1234, b"\x00\xffsecret")
    assert file.stat().st_mode & 0o077 == 0


def test_a_file_that_tells_of_no_session_is_none(tmp_path: Path) -> None:
    file = tmp_path / "session"
    assert read_kept_session(file) is None

    for rubbish in ("", "{}", '{"session": 1}', '{"session": "x", "password": "00"}', "[1]"):
        file.write_text(rubbish)
        assert read_kept_session(file) is None
