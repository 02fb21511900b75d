"""A job's query that fails is never taken for one that has ended."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.shared.report import Progress
from ottla.spark.jobs.shared.streams import run_to_end, topic_stream


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


class Told:
    """Brokers of which there is something to tell."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.is_over = False

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True

    def news(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def run(query: EndedQuery, progress: Progress | None = None, brokers: Told | None = None) -> int:
    told = progress or Progress(lambda _: None)
    return run_to_end(query, None, told, "/data/c", "begin anew", brokers or Told())


def test_a_query_that_failed_at_once_raises_its_cause() -> None:
    said = "ottla.spark.errors.DataLoss: data loss: orders-0 is gone; read on without"

    with pytest.raises(SparkRefused, match="data loss: orders-0 is gone; read on without"):
        run(EndedQuery(StreamingQueryException(said)))


def test_lost_data_have_the_remedy_of_the_job() -> None:
    lost = (
        "ottla.spark.errors.DataLoss: data loss: t-0 is gone; with failOnDataLoss=false the query goes on"
        " without; after a topic was made again, start with a new checkpoint"
    )

    with pytest.raises(SparkRefused, match=r"^data loss: t-0 is gone; begin anew$"):
        run(EndedQuery(StreamingQueryException(lost)))


def test_a_query_that_ended_at_once_is_counted() -> None:
    assert run(EndedQuery()) == 7


def test_a_query_that_is_cut_short_leaves_the_batches_that_were_told() -> None:
    class CutShort(Exception):
        pass

    class Query(EndedQuery):
        looks = 0

        def awaitTermination(self, timeout: int) -> bool:
            self.looks += 1
            if self.looks > 1:
                raise CutShort
            return False

    progress = Progress(lambda _: None)
    with pytest.raises(CutShort):
        run(Query(), progress)

    assert progress.left == (
        "7 records are done, in whole batches, as noted in /data/c; the same command goes on from there"
    )


def test_news_of_brokers_are_told_while_the_query_runs_and_no_longer() -> None:
    lines: list[str] = []
    brokers = Told("broker 1 cannot be reached")

    run(EndedQuery(), Progress(lines.append), brokers)

    assert lines[0] == "broker 1 cannot be reached"
    assert brokers.is_over


class Reader:
    """Notes the options that a stream is given."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.readStream = self

    def format(self, name: str) -> Reader:
        return self

    def option(self, name: str, value: str) -> Reader:
        self.given[name] = value
        return self

    def options(self, **options: str) -> Reader:
        self.given |= options
        return self

    def load(self) -> dict[str, str]:
        return self.given


def test_jobs_read_what_is_committed_in_batches_with_a_limit_unless_they_are_told_otherwise() -> None:
    usual: Any = topic_stream(Reader(), "h:1", "orders")  # type: ignore[arg-type]
    told = {"kafka.isolation.level": "read_uncommitted", "maxOffsetsPerTrigger": "7"}
    other: Any = topic_stream(Reader(), "h:1", "orders", options=told)  # type: ignore[arg-type]

    assert (usual["kafka.isolation.level"], usual["maxOffsetsPerTrigger"]) == ("read_committed", "5000000")
    assert (other["kafka.isolation.level"], other["maxOffsetsPerTrigger"]) == ("read_uncommitted", "7")
