"""Topics in tables of Delta and Iceberg: each record once, whatever dies, for every reader of such tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow.parquet as pq

from ottla.client.admin.topics import a_topic, create_topics, delete_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.spark.errors import DataLoss, SparkRefused
from ottla.spark.jobs import archive, lake
from ottla.spark.jobs.shared.report import Progress
from support.running.waiting import wait_until
from support.spark.lakes import POINTS, a_copying, copy, killed_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]

FORMATS = ("delta", "iceberg")
BRIEF = ("delta", "after a commit")
FULL = pytest.mark.full("kills a copy at every point")
Rows = list[tuple[Any, ...]]


@pytest.fixture(autouse=True, scope="module")
def _catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An Iceberg catalog, named as users name theirs; pyiceberg looks once in a process."""
    place = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_CATALOG__HOUSE__TYPE", "sql")
        patch.setenv("PYICEBERG_CATALOG__HOUSE__URI", f"sqlite:///{place}/catalog.db")
        patch.setenv("PYICEBERG_CATALOG__HOUSE__WAREHOUSE", place.as_uri())
        yield


def write(cluster: Cluster, topic: str, numbers: range) -> None:
    """Records in a topic of two partitions, every third without a key, some with a header."""
    with Client(cluster.bootstrap_servers) as client:
        wanted = [a_topic(topic, partitions=2, replication_factor=1)]
        # One of the same name may still be on its way out.
        wait_until(lambda: client.run(create_topics, wanted)[0].error_code in (0, 36), f"{topic} is there")
        producer = client.producer()
        for n in numbers:
            key = None if n % 3 == 0 else b"key-%d" % n
            headers = [("n", b"%d" % n)] if n % 5 == 0 else []
            producer.send(topic, b"%d" % n, partition=n % 2, key=key, headers=headers)
        producer.flush()


def asked(cluster: Cluster, topic: str, format: str, place: Path, **more: Any) -> lake.LakeOptions:
    table = str(place / "table") if format == "delta" else f"house.lake.{topic}"
    where = {"bootstrap_servers": cluster.bootstrap_servers, "topics": topic}
    return lake.LakeOptions(**where, table=table, format=format, **more)


def asked_to_archive(cluster: Cluster, topic: str, place: Path, **more: Any) -> archive.ArchiveOptions:
    return archive.ArchiveOptions(
        bootstrap_servers=cluster.bootstrap_servers, topics=topic, directory=str(place / "archive"), **more
    )


def held(options: lake.LakeOptions) -> Rows:
    """Topic, partition, offset, key, value and headers of the table, as its own package reads it."""
    if options.format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(options.table).to_pyarrow_table()
    else:
        from pyiceberg.catalog import load_catalog

        table = load_catalog("house").load_table(options.table.removeprefix("house.")).scan().to_arrow()
    columns = ("topic", "partition", "offset", "key", "value", "headers")
    rows = table.select(columns).to_pylist()
    return sorted(
        (r["topic"], r["partition"], r["offset"], r["key"], r["value"], bool(r["headers"])) for r in rows
    )


def archived(directory: str) -> Rows:
    """The same of an archive: of the files that its log names."""
    named: dict[str, None] = {}
    for entry in (Path(directory) / "_spark_metadata").iterdir():
        named |= {json.loads(line)["path"]: None for line in entry.read_text().splitlines()[1:]}
    rows: Rows = []
    for path in named:
        found = re.search("topic=(.+)/partition=(.+)/", path)
        assert found is not None
        for r in pq.read_table(path.removeprefix("file://"), partitioning=None).to_pylist():
            rows.append((found[1], int(found[2]), r["offset"], r["key"], r["value"], bool(r["headers"])))
    return sorted(rows)


def expected(topic: str, count: int) -> Rows:
    return sorted(
        (topic, n % 2, n // 2, None if n % 3 == 0 else b"key-%d" % n, b"%d" % n, n % 5 == 0)
        for n in range(count)
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_holds_each_record_once_and_further_runs_add_what_is_new(
    cluster: Cluster, tmp_path: Path, format: str
) -> None:
    topic = f"lake-{format}"
    write(cluster, topic, range(100))
    options = asked(cluster, topic, format, tmp_path, max_offsets_per_batch=30)

    first = copy(options)
    write(cluster, topic, range(100, 120))
    second, third = copy(options), copy(options)

    assert (first, second, third) == (100, 20, 0)
    assert held(options) == expected(topic, 120)
    assert lake.opened(options).holdings() == [(topic, 0, 60, 0, 59), (topic, 1, 60, 0, 59)]


@pytest.mark.parametrize(
    ("format", "point"),
    [
        pytest.param(format, point, marks=() if (format, point) == BRIEF else FULL)
        for format in FORMATS
        for point in POINTS
    ],
)
def test_a_copy_that_is_killed_goes_on_without_a_gap_or_a_repeat(
    cluster: Cluster, tmp_path: Path, format: str, point: str
) -> None:
    topic = f"killed-{format}-{POINTS.index(point)}"
    write(cluster, topic, range(60))
    options = asked(cluster, topic, format, tmp_path, max_offsets_per_batch=20)

    assert killed_at(options, point, 1), f"{point} was never reached"
    assert killed_at(options, point, 2), f"{point} was not reached again"
    assert not killed_at(options, "", 1)

    assert held(options) == expected(topic, 60)


@pytest.mark.parametrize("point", [pytest.param(point, marks=FULL) for point in POINTS])
def test_an_archive_that_is_killed_goes_on_without_a_gap_or_a_repeat(
    cluster: Cluster, tmp_path: Path, point: str
) -> None:
    topic = f"killed-archive-{POINTS.index(point)}"
    write(cluster, topic, range(60))
    options = asked_to_archive(cluster, topic, tmp_path, max_offsets_per_batch=4)

    assert killed_at(options, point, 1), f"{point} was never reached"
    assert killed_at(options, point, 9), f"{point} was not reached again"
    assert not killed_at(options, "", 1)

    assert archived(options.directory) == expected(topic, 60)


def test_of_two_archives_at_once_one_is_refused_and_no_record_is_there_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    write(cluster, "two-archives", range(40))
    options = asked_to_archive(cluster, "two-archives", tmp_path, max_offsets_per_batch=10)
    one, other = a_copying(options), a_copying(options)

    assert one.step()
    assert one.step()
    with pytest.raises(SparkRefused, match="another run has copied the same topics"):
        other.step()
    copy(options)

    assert archived(options.directory) == expected("two-archives", 40)


@pytest.mark.parametrize("format", FORMATS)
def test_of_two_runs_at_once_one_is_refused_and_no_record_is_there_twice(
    cluster: Cluster, tmp_path: Path, format: str
) -> None:
    topic = f"two-{format}"
    write(cluster, topic, range(20))
    options = asked(cluster, topic, format, tmp_path, max_offsets_per_batch=10)
    copy(options)
    write(cluster, topic, range(20, 40))
    one, other = a_copying(options), a_copying(options)

    assert one.step()
    assert one.step()
    write(cluster, topic, range(40, 60))
    with pytest.raises(SparkRefused, match="another run has copied the same topics"):
        other.step()
    copy(options)

    assert held(options) == expected(topic, 60)


def test_two_topics_may_be_copied_into_one_table_by_two_runs(cluster: Cluster, tmp_path: Path) -> None:
    for topic in ("left", "right"):
        write(cluster, topic, range(10))
    runs = [a_copying(asked(cluster, topic, "delta", tmp_path)) for topic in ("left", "right")]

    for run in runs:
        while run.step() is not None:
            pass

    assert held(asked(cluster, "left", "delta", tmp_path)) == expected("left", 10) + expected("right", 10)
    assert [copy(asked(cluster, topic, "delta", tmp_path)) for topic in ("left", "right")] == [0, 0]


def test_a_topic_that_was_made_again_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    write(cluster, "remade", range(10))
    options = asked(cluster, "remade", "delta", tmp_path)
    copy(options)
    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_topics, ["remade"])
    write(cluster, "remade", range(30))

    with pytest.raises(DataLoss, match="topic remade was deleted and made again"):
        copy(options)


def test_the_job_writes_on_spark_what_duckdb_reads(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    write(cluster, "by-spark", range(50))
    options = asked(cluster, "by-spark", "delta", tmp_path, max_records_per_file=10)
    said: list[str] = []

    report = lake.run(spark, options, Progress(said.append))

    assert report.headline == f"50 records copied now, to {options.table}"
    assert report.tables[0].rows == [("by-spark", 0, 25, 0, 24), ("by-spark", 1, 25, 0, 24)]
    assert said == ["batch 0: 50 records in 6 files, 50 in all"]
    assert held(options) == expected("by-spark", 50)
    files = f"{options.table}/*/*/*.parquet"
    found = duckdb.sql(
        f"select count(distinct (partition, \"offset\")) from read_parquet('{files}')"
    ).fetchall()
    assert found == [(50,)]


def test_a_dry_run_tells_what_would_be_read(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    write(cluster, "dry", range(10))
    options = asked(cluster, "dry", "delta", tmp_path, dry_run=True)

    report = lake.run(spark, options, Progress(lambda _: None))

    assert report.tables[0].rows == [("dry", 0, 0, 5), ("dry", 1, 0, 5)]
    assert not (tmp_path / "table").exists()
