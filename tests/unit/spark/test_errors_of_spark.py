"""Of Spark's errors one line is told."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from ottla.spark.jobs.shared.streams import spark_said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[NO] There is no such thing.\n\nJVM stacktrace:\n\tat org.apache", "[NO] There is no such thing."),
        (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted\n\tat x",
            "Job aborted",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'\n\tat x",
            "org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'",
        ),
    ],
)
def test_the_line_that_says_what_was_wrong_is_found(text: str, told: str) -> None:
    assert spark_said(Exception(text)) == told
