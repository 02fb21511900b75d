"""The Java process of a Spark session: started, heard and ended by us, whatever the terminal does.

It runs in a session of its own, so that Ctrl-C reaches this program alone, which then ends it in one piece;
Spark's workers would each tell of the interruption with a stack. What it says goes through a pipe: when it is
told to end, nobody wants to hear what that broke off.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from ottla.spark.errors import SparkRefused

GRACE_S = 10.0
STANDARD_ERROR = 2
_OF_JAVA_ITSELF = b"WARNING: "
"""Java warns of what Spark asks it for before it can be told not to."""


_is_over = threading.Event()
"""Java was told to end, with the program: none is started any more, and none is heard."""


class _Relay:
    """Passes on, line by line, what Java writes to its standard error."""

    def __init__(self) -> None:
        exit_, self.entrance = os.pipe()
        self._exit = os.fdopen(exit_, "rb")
        self._thread = threading.Thread(target=self._pass_on, name="words-of-java", daemon=True)
        self._thread.start()

    def close_entrance(self) -> None:
        """Leave the pipe to Java alone: the relay ends with it."""
        os.close(self.entrance)

    def wait(self) -> None:
        """Until all is passed on that Java has said, if it has ended."""
        self._thread.join(GRACE_S)

    def _pass_on(self) -> None:
        with self._exit:
            for line in self._exit:
                if not (_is_over.is_set() or line.startswith(_OF_JAVA_ITSELF)):
                    with suppress(OSError):  # Nobody listens; Java must not come to wait for that.
                        os.write(STANDARD_ERROR, line)


def start_java(conf: SparkConf) -> None:
    """Start it for the sessions of this program; nothing is to do where it runs."""
    if SparkContext._gateway is not None:
        return
    if _is_over.is_set():
        raise SparkRefused("Spark was told to end", "start the program again")
    launch: Any = launch_gateway
    relay = _Relay()
    try:
        gateway = launch(conf, {"stderr": relay.entrance, "start_new_session": True})
    except BaseException as error:
        _end(_half_started(frame for frame, _ in traceback.walk_tb(error.__traceback__)))
        relay.close_entrance()
        relay.wait()
        raise
    relay.close_entrance()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def end_java() -> bool:
    """End it for good, whether it runs or is only starting in another thread; was there one?

    It still removes its temporary files.
    """
    _is_over.set()
    logging.disable(logging.CRITICAL)  # Py4J logs, with stacks, that Java is gone.
    updates: Any = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if updates is not None:
        updates.handle_error = lambda *_: None  # And so would this.
    running: Any = getattr(SparkContext._gateway, "proc", None)
    found = [] if running is None else [running]
    for frame in sys._current_frames().values():
        found += _half_started(_with_callers(frame))
    _end(found)
    return bool(found)


def _end(processes: Iterable["subprocess.Popen[bytes]"]) -> None:
    """Ask them, and all that they have started, to end; make them when the grace has passed."""
    for process in processes:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, number)
            try:
                process.wait(GRACE_S)
                break
            except subprocess.TimeoutExpired:
                continue


def _half_started(frames: Iterable[FrameType]) -> list["subprocess.Popen[bytes]"]:
    """The Java that PySpark is waiting for in one of these calls; PySpark itself forgets it when interrupted.

    It is a ``proc`` of PySpark's or, where it was only just made, the ``self`` of ``Popen``'s own methods.
    """
    found = [frame.f_locals.get(name) for frame in frames for name in ("proc", "self")]
    return [process for process in found if isinstance(process, subprocess.Popen) and _has_started(process)]


def _has_started(process: "subprocess.Popen[bytes]") -> bool:
    return bool(getattr(process, "pid", None))


def _with_callers(frame: FrameType | None) -> Iterable[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
