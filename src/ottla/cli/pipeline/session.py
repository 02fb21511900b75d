"""What the commands of ``ottla pipeline`` share: a Spark, and one line when interrupted or refused."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ottla.cli.pipeline.flags import in_flags
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import StopAsked, stop_once
from ottla.launch.refusal import LaunchRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LOCAL = "local[*]"
UNWIND_S_MAX = 5.0
"""How long a job may take to notice that Java has ended, and to remove its temporary files."""


def interruptible(work: Callable[[], T], left: Callable[[], str]) -> T:
    """Do it, and let Ctrl-C and its like end it at once, with one line that says what is ``left``.

    The work has a thread of its own: signals reach the main thread, which only waits, so that no exception
    comes out of nowhere in the middle of Spark's code, where it is lost or told as a stack.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            outcome = work()
        except (CommandRefused, LaunchRefused, OSError) as refused:
            _end_java()  # Otherwise Spark would go on with work that nobody waits for.
            done.set_exception(refused)
        else:
            done.set_result(outcome)
        finally:
            done.cancel()  # Where neither was the case; the thread itself tells of a mistake of ours.

    errors = sys.stderr
    with stop_once() as stop:
        job = threading.Thread(target=run, name="job", daemon=True)
        job.start()
        try:
            outcome = done.result()
        except CancelledError:
            job.join()
            raise typer.Exit(1) from None
        except StopAsked:
            sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - what breaks off now has nothing to say
            if _end_java():
                job.join(UNWIND_S_MAX)
            raise
    if stop.asked:
        typer.echo(f"ottla: interrupted; {left()}", file=errors)
        raise typer.Exit(stop.exit_code)
    return outcome


def _end_java() -> bool:
    """Whether there was one to end."""
    if "ottla.spark.runtime.java_side" not in sys.modules:
        return False
    from ottla.spark.runtime.java_side import end_java

    return end_java()


@contextmanager
def a_session(
    master: str, app_name: str, *, settings: Mapping[str, str] | None = None, is_brief: bool = False
) -> Iterator["SparkSession"]:
    """Spark, for the length of a ``with``."""
    import logging

    from pyspark.logger import PySparkLogger

    from ottla.spark.session import spark_session

    PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)  # We tell it ourselves.
    spark = spark_session(master, app_name=app_name, settings=settings, is_brief=is_brief)
    yield spark
    spark.stop()


@contextmanager
def refusals_by_flags(options: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Show refusals of our own code without a stack, in terms of the flags that were typed.

    ``options`` are the job's.
    """
    from ottla.spark.errors import SparkRefused

    try:
        yield
    except SparkRefused as refused:
        raise LaunchRefused(in_flags(str(refused), options or {})) from None
    except OSError as error:
        if error.filename is None:
            raise
        raise LaunchRefused(f"{error.filename}: {error.strerror}; name another file") from None


@contextmanager
def refusals_in_one_sentence(options: Mapping[str, Any] | None = None) -> Iterator[None]:
    """The same for work on Spark: also refusals that Spark wraps, and Spark's own errors."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from ottla.spark.errors import SparkRefused
        from ottla.spark.jobs.shared.streams import explained, spark_said
    except ModuleNotFoundError as missing:
        raise LaunchRefused(f"{missing.name} is not installed; pip install 'ottla[spark]'") from None
    with refusals_by_flags(options):
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if isinstance(ours := explained(error), SparkRefused):
                raise ours from None
            said = spark_said(error)
            raise LaunchRefused(
                f"Spark gave up: {said}; mend what it names, then run the command again"
            ) from None
