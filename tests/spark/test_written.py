"""What a task could not write travels to the driver as a value, and is raised there."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle
from pyspark.sql.datasource import WriterCommitMessage

from ottla.spark.errors import SparkRefused
from ottla.spark.options.schema import read_schema
from ottla.spark.options.write import write_options
from ottla.spark.write.sinks import BatchWriter, StreamWriter, Written


def messages() -> list[WriterCommitMessage | None]:
    """As Spark hands them over: pickled in tasks, in any order, none for a task that failed."""
    sent = [Written(3), None, Written(0, SparkRefused("a row has null in column 'topic'", "fill it"))]
    return [cloudpickle.loads(cloudpickle.dumps(message)) for message in sent]


def test_the_driver_raises_what_a_task_refused() -> None:
    options = write_options({"kafka.bootstrap.servers": "127.0.0.1:9"})

    with pytest.raises(SparkRefused, match="a row has null in column 'topic'; fill it"):
        BatchWriter(options, read_schema(False)).commit(messages())
    with pytest.raises(SparkRefused, match="a row has null in column 'topic'; fill it"):
        StreamWriter(options, read_schema(False)).commit(messages(), 7)


def test_the_driver_is_content_when_all_was_written() -> None:
    options = write_options({"kafka.bootstrap.servers": "127.0.0.1:9"})

    BatchWriter(options, read_schema(False)).commit(messages()[:2])
