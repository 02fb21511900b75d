"""Turns the signals that ask a program to end into one exception, once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heard() -> list[signal.Signals]:
    """The signals that end a command; one started by ``nohup`` outlives its terminal."""
    is_hang_up_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [n for n in _ASK_TO_END if n is not signal.SIGHUP or not is_hang_up_ignored]


class StopAsked(BaseException):
    """Ctrl-C, SIGTERM or the end of the terminal."""


@dataclass(slots=True)
class Stop:
    """Whether the block was left because someone asked for it, and by which signal first."""

    asked: bool = False
    number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """As shells have it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.number


@contextmanager
def stop_between() -> Iterator[Stop]:
    """Note the first such signal, for a loop that looks at ``asked`` between two steps.

    Nothing is cut short in the middle of a step, unless a second signal asks for that.
    """
    stop = Stop()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.asked:
            raise StopAsked
        stop.asked = True

    before = {number: signal.signal(number, on_signal) for number in heard()}
    try:
        yield stop
    except StopAsked:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stop_once() -> Iterator[Stop]:
    """Raise ``StopAsked`` at the first such signal inside the block, and swallow it at the end of the block.

    Later signals are ignored, so that a second Ctrl-C does not cut an orderly stop short. Python drops an
    exception that is raised while an object is finalized: a loop must look at ``asked`` as well.
    """

    stop = Stop()

    def on_signal(asked_by: int, _frame: FrameType | None) -> None:
        for number in _ASK_TO_END:
            signal.signal(number, signal.SIG_IGN)
        stop.number = asked_by
        stop.asked = True
        raise StopAsked

    before = {number: signal.signal(number, on_signal) for number in heard()}
    try:
        yield stop
    except StopAsked:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
