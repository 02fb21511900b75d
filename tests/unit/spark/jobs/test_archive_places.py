"""An archive's files stay where it is."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.spark.jobs.shared.archives import Archive


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
