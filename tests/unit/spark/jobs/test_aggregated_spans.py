"""How long a window is, and how late a record may come, is checked before Spark is started."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from ottla.spark.errors import OptionRefused
from ottla.spark.jobs.aggregate import check_span


@pytest.mark.parametrize("value", ["1 minute", "90 SECONDS", "1 hour 30 minutes", "0.5 seconds", " 2 days "])
def test_a_span_of_time_is_taken(value: str) -> None:
    check_span("window", value, is_of_windows=True)


@pytest.mark.parametrize(
    "value", ["", "bla", "1", "minute", "1 minuet", "-1 minute", "1 minute x", "1.5 hours"]
)
def test_what_is_no_span_of_time_is_refused_with_one(value: str) -> None:
    with pytest.raises(
        OptionRefused, match=r"option watermark='.*': it is not a span of time; write '1 minute'"
    ):
        check_span("watermark", value)


def test_a_window_has_a_length_and_a_watermark_needs_none() -> None:
    check_span("watermark", "0 seconds")

    with pytest.raises(OptionRefused, match="it has no length"):
        check_span("window", "0 seconds", is_of_windows=True)
