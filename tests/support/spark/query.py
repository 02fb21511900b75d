"""A program that dies: archives a topic and copies it into another, and goes on where it was when run again.

``spark_query.py SERVERS SOURCE TARGET DIRECTORY``. Both queries take small batches, so that a kill finds them
at every step. It prints a line when Spark is up, and one for each batch of the archive.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from ottla.spark.jobs import archive
from ottla.spark.jobs.shared.report import Progress
from ottla.spark.jobs.shared.streams import topic_stream
from ottla.spark.session import spark_session

OFFSETS_PER_BATCH = 500
FOLLOW_S = 0.1
UP = "up"
NOTHING_COPIED = "nothing copied"


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start_copy(
    spark: Any, servers: str, source: str, target: str, directory: str, trigger: Any, limit: int
) -> Any:
    limits = {"maxOffsetsPerTrigger": str(limit)}
    rows = topic_stream(spark, servers, source, options=limits).select("value")
    writer = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", target).option("checkpointLocation", f"{directory}/copy")
    return writer.trigger(**trigger).start()


def run(spark: Any, servers: str, source: str, target: str, directory: str, *, follows: bool) -> None:
    """Both queries, over what is there or for ever."""
    trigger: Any = {"processingTime": f"{FOLLOW_S} seconds"} if follows else {"availableNow": True}
    limit = OFFSETS_PER_BATCH if follows else 5_000_000
    copy = start_copy(spark, servers, source, target, directory, trigger, limit)
    # The first batches of two queries at the same moment can spoil each other's tasks: Spark then cannot read
    # a map that changed while it was written (java.io.OptionalDataException).
    while copy.isActive and copy.lastProgress is None:
        time.sleep(0.05)
    options = archive.ArchiveOptions(
        bootstrap_servers=servers,
        topics=source,
        directory=f"{directory}/archive",
        max_offsets_per_batch=limit,
        follow_s=FOLLOW_S if follows else None,
    )

    def tell_both(line: str) -> None:
        progress = copy.lastProgress
        tell(f"{line}, {NOTHING_COPIED if progress is None else 'and copies'}")

    archive.run(spark, options, Progress(tell_both))
    copy.awaitTermination()


def main(servers: str, source: str, target: str, directory: str) -> None:
    settings = {"spark.driver.memory": "512m"}
    spark = spark_session("local[2]", app_name="dying", settings=settings, is_brief=True)
    tell(UP)
    run(spark, servers, source, target, directory, follows=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
