"""A Spark session that knows Ottla: Java found or brought, this Python for its workers, our code shipped."""

import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.launch.java import find_java, spark_environment
from ottla.spark import register

PACKAGES = ("ottla", "pyspark_ottla")
LOCAL = "local[*]"


def spark_session(
    master: str = LOCAL, *, app_name: str = "ottla", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The session; on a master that is not this process, our packages are shipped to the executors."""
    os.environ.update(spark_environment(find_java()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in {**_defaults(), **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not master.startswith("local[") and master != "local":
        ship_packages(spark)
    register(spark)
    return spark


def ship_packages(spark: SparkSession) -> None:
    """Hand our own source to every executor; what it depends on must be installed there."""
    target = Path(tempfile.mkdtemp(prefix="ottla-spark-")) / "ottla.zip"
    root = Path(__file__).resolve().parent.parent.parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                archive.write(file, file.relative_to(root))
    spark.sparkContext.addPyFile(str(target))


def _defaults() -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }
