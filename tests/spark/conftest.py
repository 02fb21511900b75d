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
    with warnings.catch_warnings():
        # Spark's gateway leaves its sockets to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
