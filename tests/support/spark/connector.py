"""Spark's own Kafka connector, fetched jar by jar: the judge of ours."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from support.processes.lab import MAVEN_PLUGIN, built_once, lab_dir, require_command, run_maven

# Copied one by one: what the connector's POM asks for beyond these is not needed, or is in pyspark.
JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


@cache
def connector_jars() -> list[Path]:
    """The connector's jars, for ``spark.jars``."""
    require_command("java")
    directory = built_once(lab_dir() / "spark-connector-4.2.0", _copy)
    return sorted(directory.glob("*.jar"))


def _copy(target: Path) -> None:
    for artifact in JARS:
        run_maven(f"{MAVEN_PLUGIN}:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={target}")
