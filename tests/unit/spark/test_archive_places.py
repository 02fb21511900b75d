"""An archive's files stay where it is, and what cannot be gone on with has the right remedy."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.spark.errors import SparkRefused
from ottla.spark.jobs.archive import _told_for_archives
from ottla.spark.jobs.archives import Archive


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("s3a://bucket/archive", "s3a://bucket/archive/_checkpoint"),
        ("hdfs://name:8020/a/", "hdfs://name:8020/a/_checkpoint"),
        ("file:///data/a", "file:///data/a/_checkpoint"),
        ("archive", "archive/_checkpoint"),
    ],
)
def test_the_checkpoint_lies_in_the_archive(location: str, path: str) -> None:
    nobody: Any = None

    assert Archive(nobody, location).path_of("_checkpoint") == path


def test_lost_data_ask_for_another_directory() -> None:
    lost = SparkRefused(
        "data loss: t-0 is gone; with failOnDataLoss=false the query goes on without", "start anew"
    )
    other = SparkRefused("option to='/': it may not be written to", "choose another")

    assert str(_told_for_archives(lost)) == "data loss: t-0 is gone; archive to another directory (--to)"
    assert _told_for_archives(other) is other
