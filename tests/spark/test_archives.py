"""Archives and replays: wherever they lie, whatever topics are called, and whichever topic gets them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("numba")

from ottla.client.admin.topics import a_topic, create_topics, delete_topics
from ottla.client.blocking.client import Client
from ottla.launch.cluster import Cluster
from ottla.spark.errors import SparkRefused
from ottla.spark.jobs import archive, replay
from ottla.spark.jobs.shared.archives import Archive
from ottla.spark.jobs.shared.report import Progress
from ottla.spark.lake.sink_log import SinkLog
from support.running.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.jobs.shared.report import Report

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def quiet() -> Progress:
    """Of which nobody reads what it tells."""
    return Progress(lambda _: None)


def make(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    with Client(cluster.bootstrap_servers) as client:
        wanted = [a_topic(topic, partitions=1, replication_factor=1)]
        # One of the same name may still be on its way out.
        wait_until(lambda: not client.run(create_topics, wanted)[0].error_code, f"{topic} is made")
        producer = client.producer()
        for value in values:
            producer.send(topic, value)
        producer.flush()


def archived(spark: SparkSession, cluster: Cluster, topics: str, directory: str) -> Report:
    options = archive.ArchiveOptions(
        bootstrap_servers=cluster.bootstrap_servers, topics=topics, directory=directory
    )
    return archive.run(spark, options, quiet())


def replayed(spark: SparkSession, cluster: Cluster, directory: str, source: str | None, topic: str) -> str:
    options = replay.ReplayOptions(
        bootstrap_servers=cluster.bootstrap_servers, directory=directory, topic=topic, source_topic=source
    )
    return replay.run(spark, options, quiet()).headline


def test_topics_that_look_like_numbers_are_archived_and_replayed_by_name(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    for name in ("007", "2024"):
        make(cluster, name, [name.encode()] * 3)
    make(cluster, "numbers-again", [])
    directory = (tmp_path / "numbers").as_uri()

    report = archived(spark, cluster, "007,2024", directory)
    said = replayed(spark, cluster, directory, "007", "numbers-again")

    assert [row[0] for row in report.tables[0].rows] == ["007", "2024"]
    assert said == "3 records replayed into numbers-again"
    assert replayed(spark, cluster, directory, "007", "numbers-again").startswith("0 records")


def test_a_replay_writes_only_what_is_chosen_and_every_time(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    make(cluster, "all", [b"%d" % n for n in range(10)])
    make(cluster, "chosen", [])
    archived(spark, cluster, "all", str(tmp_path))

    def again(**more: Any) -> str:
        options = replay.ReplayOptions(
            bootstrap_servers=cluster.bootstrap_servers, directory=str(tmp_path), topic="chosen", **more
        )
        replay.check(options)
        return replay.run(spark, options, quiet()).headline

    some = "offset >= 3 AND offset < 5"
    assert again(where=some, dry_run=True) == "2 records to replay into chosen; nothing was written"
    assert again(where=some) == again(where=some) == "2 records replayed into chosen"
    assert again(since="2100-01-01") == "0 records replayed into chosen"
    assert again(until="2100-01-01", since="2000-01-01T00:00+02:00", where="value = '7'").startswith("1 ")
    assert again() == "10 records replayed into chosen"
    with pytest.raises(SparkRefused, match="option where='nothing = 1': "):
        again(where="nothing = 1")
    with pytest.raises(SparkRefused, match="option since='today': it is no time; write 2026"):
        again(since="today")


def test_a_topic_that_was_made_again_gets_everything_again(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    make(cluster, "source", [b"1", b"2"])
    make(cluster, "target", [])
    directory = str(tmp_path / "source")
    archived(spark, cluster, "source", directory)

    first = replayed(spark, cluster, directory, None, "target")
    with Client(cluster.bootstrap_servers) as client:
        client.run(delete_topics, ["target"])
    make(cluster, "target", [])

    assert first == replayed(spark, cluster, directory, None, "target") == "2 records replayed into target"


def test_an_archive_that_sparks_own_sink_began_is_gone_on_with(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    make(cluster, "begun", [b"1", b"2"])
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    rows = reader.options(subscribe="begun", startingOffsets="earliest", includeHeaders="true").load()
    writer = rows.writeStream.format("parquet").partitionBy("topic", "partition").trigger(availableNow=True)
    places = {"path": str(tmp_path), "checkpointLocation": str(tmp_path / "_checkpoint")}
    writer.options(**places).start().awaitTermination()
    with Client(cluster.bootstrap_servers) as client:
        producer = client.producer()
        producer.send("begun", b"3")
        producer.flush()

    first = archived(spark, cluster, "begun", str(tmp_path))
    second = archived(spark, cluster, "begun", str(tmp_path))

    assert (first.headline.split()[0], second.headline.split()[0]) == ("1", "0")
    assert second.tables[0].rows == [("begun", 0, 3, 0, 2, 0)]


def test_an_archive_of_sparks_sink_without_its_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "0").write_text("v1")

    with pytest.raises(SparkRefused, match=r"whose _checkpoint is missing.*archive to another directory"):
        SinkLog(str(tmp_path)).reached()


def test_spark_reads_what_the_log_says_when_it_is_compacted_too(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    make(cluster, "compacted-log", [b"%d" % n for n in range(23)])
    options = archive.ArchiveOptions(
        bootstrap_servers=cluster.bootstrap_servers,
        topics="compacted-log",
        directory=str(tmp_path),
        max_offsets_per_batch=1,
    )

    report = archive.run(spark, options, quiet())

    assert report.tables[0].rows == [("compacted-log", 0, 23, 0, 22, 0)]
    assert sorted(p.name for p in (tmp_path / "_spark_metadata").iterdir() if p.name[0] != ".") == [
        *map(str, range(10, 19)),
        "19.compact",
        "20",
        "21",
        "22",
        "9.compact",
    ]


def test_an_empty_topic_makes_an_empty_archive(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    make(cluster, "empty", [])

    report = archived(spark, cluster, "empty", str(tmp_path))

    assert report.headline == f"0 records archived now, to {tmp_path}"
    assert report.tables[0].rows == []


def test_a_replay_from_nowhere_is_refused(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(
        SparkRefused, match="there is no such directory; name the directory that the job archive wrote to"
    ):
        replayed(spark, cluster, str(tmp_path / "nowhere"), None, "target")


def test_a_note_is_kept_and_replaced(spark: SparkSession, tmp_path: Path) -> None:
    place = Archive(spark, tmp_path.as_uri())

    assert place.note("_note.json") is None
    place.write_note("_note.json", "ä")
    place.write_note("_note.json", "{}")

    assert place.note("_note.json") == "{}"
