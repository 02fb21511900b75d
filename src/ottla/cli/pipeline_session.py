"""What the commands of ``ottla pipeline`` share: a Spark session, and refusals that are one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.signals import StopAsked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"


@contextmanager
def a_session(master: str, app_name: str, *, is_brief: bool = False) -> Iterator["SparkSession"]:
    """Spark, for the length of a ``with``; whoever is told to end does not wait for its jobs."""
    from ottla.spark.session import end_at_once, spark_session

    spark = spark_session(master, app_name=app_name, is_brief=is_brief)
    try:
        yield spark
    except (KeyboardInterrupt, StopAsked):
        end_at_once(spark)
        raise
    except BaseException:
        spark.stop()
        raise
    spark.stop()


@contextmanager
def refusals_in_one_sentence() -> Iterator[None]:
    """What our own code refuses, however deep in Spark's it was, reaches the user without a stack."""
    from ottla.launch.refusal import LaunchRefused

    try:
        from pyspark.errors import PySparkException

        from ottla.spark.errors import SparkRefused
        from ottla.spark.jobs.streams import explained
    except ModuleNotFoundError as missing:
        raise LaunchRefused(f"{missing.name} is not installed; pip install 'ottla[spark]'") from None
    try:
        yield
    except SparkRefused as refused:
        raise LaunchRefused(str(refused)) from None
    except OSError as error:
        if error.filename is None:
            raise
        raise LaunchRefused(f"{error.filename}: {error.strerror}; name another file") from None
    except PySparkException as error:
        if isinstance(ours := explained(error), SparkRefused):
            raise LaunchRefused(str(ours)) from None
        raise
