"""Copies a topic with a stream, with the Python that ``PYSPARK_PYTHON`` names for its workers.

``streamed.py SERVERS SOURCE TARGET CHECKPOINT``.
"""

from __future__ import annotations

import sys

from ottla.spark.session import spark_session


def main(servers: str, source: str, target: str, checkpoint: str) -> None:
    spark = spark_session("local[1]", app_name="streamed", is_brief=True)
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers)
    rows = reader.options(subscribe=source, startingOffsets="earliest").load().select("value")
    writer = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", servers)
    options = {"topic": target, "checkpointLocation": checkpoint, "transactionalIdPrefix": "streamed"}
    writer.options(**options).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
