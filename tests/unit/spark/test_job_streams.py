"""A job's query that fails is never taken for one that has ended."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.streams import run_to_end


class EndedQuery:
    """A query that has ended before anybody looked; Spark tells why to those who wait for it."""

    isActive = False
    recentProgress = ({"batchId": 0, "numInputRows": 3}, {"batchId": 1, "numInputRows": 4})

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def awaitTermination(self, timeout: int) -> bool:
        if self.error is not None:
            raise self.error
        return True

    def trigger(self, **_: Any) -> EndedQuery:
        return self

    def start(self) -> EndedQuery:
        return self


def test_a_query_that_failed_at_once_raises_its_cause() -> None:
    said = "ottla.spark.errors.DataLoss: data loss: orders-0 is gone; read on without"

    with pytest.raises(SparkRefused, match="data loss: orders-0 is gone; read on without"):
        run_to_end(EndedQuery(StreamingQueryException(said)), None, lambda _: None)


def test_a_query_that_ended_at_once_is_counted() -> None:
    assert run_to_end(EndedQuery(), None, lambda _: None) == 7
