"""A Spark session that knows Ottla: Java found or brought, this Python for its workers, our code shipped."""

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyspark
from pyspark import SparkConf
from pyspark.sql import SparkSession

from ottla.launch.java import find_java, spark_environment
from ottla.spark import register
from ottla.spark.runtime.java_side import start_java

PACKAGES = ("ottla", "pyspark_ottla")
LOCAL = "local[*]"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

# For sessions of a minute: Java starts with half the work where it does not prepare for a long life.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_session(
    master: str = LOCAL,
    *,
    app_name: str = "ottla",
    settings: Mapping[str, str] | None = None,
    is_brief: bool = False,
) -> SparkSession:
    """The session; on a master that is not this process, our packages are shipped to the executors.

    ``is_brief``: for little data, on a Java that starts soon and never becomes fast.
    """
    os.environ.update(spark_environment(find_java()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _is_local(master):
        # Otherwise Spark looks this machine's name up, and does not start where nobody knows it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    conf = SparkConf().setMaster(master).setAppName(app_name)
    conf.setAll(list({**_defaults(is_brief), **(settings or {})}.items()))
    with _quick_workers(master):
        start_java(conf)
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not _is_local(master) or os.environ["PYSPARK_PYTHON"] != sys.executable:
        ship_packages(spark)
    register(spark)
    return spark


def ship_packages(spark: SparkSession) -> None:
    """Hand our own source to every executor; what it depends on must be installed there.

    The driver's own workers, which plan streams, do not look at shipped files: they find it by their path.
    """
    target = Path(tempfile.mkdtemp(prefix="ottla-spark-")) / "ottla.zip"
    root = Path(__file__).resolve().parent.parent.parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                archive.write(file, file.relative_to(root))
    context = spark.sparkContext
    context.addPyFile(str(target))
    known = context.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(target), known]))


def _is_local(master: str) -> bool:
    return master.startswith("local[") or master == "local"


@contextmanager
def _quick_workers(master: str) -> Iterator[None]:
    """Start Spark so that its workers import PySpark as it is installed, compiled, not from a zip of sources.

    That is a third of the work, and keeps them within the ten seconds that Spark gives them on a busy day.
    """
    if not _is_local(master) or "SPARK_HOME" in os.environ:
        yield
        return
    os.environ["SPARK_HOME"] = _home_without_sources()
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


@cache
def _home_without_sources() -> str:
    """The installed Spark under another name, without its zip of Python sources."""
    directory = Path(tempfile.mkdtemp(prefix="ottla-spark-home-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "python":
            (directory / entry.name).symlink_to(entry)
    return str(directory)


def _defaults(is_brief: bool) -> dict[str, str]:
    java = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1" if is_brief else "4",
        "spark.driver.extraJavaOptions": f"{java} {_BRIEF_JAVA}" if is_brief else java,
    }
