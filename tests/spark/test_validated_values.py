"""What the validation lets pass is one JSON object of the schema, with every field that must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from ottla.spark.jobs.validate import CAUSE, _schema, with_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

NO_JSON = "the value is not JSON of the schema"
SCHEMA = (
    "id BIGINT NOT NULL, `a.b` STRING NOT NULL, at STRUCT<x: INT NOT NULL, y: INT>, "
    "items ARRAY<STRUCT<n: INT NOT NULL>>, by MAP<STRING, STRUCT<m: INT NOT NULL>>"
)
GOOD = '"id": 1, "a.b": "x"'
VALUES = {
    f"{{{GOOD}}}": None,
    f" {{{GOOD}}} \n": None,
    f'{{{GOOD}, "at": {{"x": 1}}, "items": [{{"n": 1}}, null], "by": {{"k": {{"m": 1}}}}}}': None,
    f'{{{GOOD}, "at": null, "items": null}}': None,
    f"{{{GOOD}}} garbage": NO_JSON,
    f"{{{GOOD}}}{{{GOOD}}}": NO_JSON,
    f"{{{GOOD}}}}}": NO_JSON,
    f"{{{GOOD}}},": NO_JSON,
    f"[{{{GOOD}}}]": NO_JSON,
    "": NO_JSON,
    "null": NO_JSON,
    "5": NO_JSON,
    '{"id": "three", "a.b": "x"}': NO_JSON,
    '{"a.b": "x"}': "field id is missing",
    '{"id": 1}': "field a.b is missing",
    f'{{{GOOD}, "at": {{"y": 1}}}}': "field at.x is missing",
    f'{{{GOOD}, "items": [{{"n": 1}}, {{}}]}}': "field items.n is missing",
    f'{{{GOOD}, "by": {{"k": {{"m": null}}}}}}': "field by.m is missing",
}


def test_each_value_is_judged_by_all_of_it(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(value.encode(),) for value in VALUES], "value BINARY")

    found = {row["value"].decode(): row[CAUSE] for row in with_cause(rows, _schema(SCHEMA)).collect()}

    assert found == VALUES


def test_a_value_that_is_null_is_told_apart(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "value BINARY")

    assert [row[CAUSE] for row in with_cause(rows, _schema("id BIGINT")).collect()] == ["the value is null"]
