"""A request to end is heard once."""

import os
import signal
from collections.abc import Iterator

import pytest

from ottla.cli.shared.signals import stop_between, stop_once


@pytest.fixture(autouse=True)
def terminal() -> Iterator[None]:
    """The end of the terminal would end us, also where the tests were started by ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_block_and_is_remembered(number: signal.Signals) -> None:
    reached_the_end = False

    with stop_once() as stop:
        os.kill(os.getpid(), number)
        reached_the_end = True

    assert stop.asked
    assert stop.exit_code == 128 + number
    assert not reached_the_end


def test_second_signal_does_not_cut_the_stopping_short() -> None:
    stopped_in_order = False

    with stop_once() as stop:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            stopped_in_order = True

    assert stop.asked
    assert stopped_in_order


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_python_drops_is_remembered() -> None:
    class EndsNow:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with stop_once() as stop:
        EndsNow()
        is_known_to_a_loop = stop.asked

    assert is_known_to_a_loop


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with stop_once() as stop:
        assert signal.getsignal(signal.SIGTERM) is not before

    assert not stop.asked
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_nohup_started_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with stop_once() as once, stop_between() as between:
        os.kill(os.getpid(), signal.SIGHUP)

    assert not once.asked
    assert not between.asked
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
