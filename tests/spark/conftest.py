"""One cluster and one Spark session for all tests of this directory: both are slow to start."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.launch.cluster import Cluster


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_to_the_next() -> Iterator[None]:
    """What Spark's gateway leaves to the collector is collected here; later it would fail another test."""
    yield
    collect_quietly()


def collect_quietly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three brokers of ours."""
    from ottla.launch.cluster import Cluster

    with Cluster(3, sync=False) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local session, made as the pipeline makes it."""
    pytest.importorskip("pyspark")
    from ottla.spark.session import spark_session

    settings = {"spark.driver.memory": "1g"}
    session: Any = spark_session("local[2]", app_name="tests", settings=settings, is_brief=True)
    yield session
    session.stop()
    collect_quietly()
