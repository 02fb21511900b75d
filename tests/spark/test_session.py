"""A session starts wherever there is a Java, and leaves none behind when it is given up."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.slow, pytest.mark.java]

# Interrupts itself, as Ctrl-C does, as soon as Java is starting; then tells which processes it still has.
INTERRUPTED = """
import os, signal, threading, time
from pathlib import Path
from ottla.spark.session import spark_session

# Whoever runs the tests in the background may have told their processes to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
children = Path(f"/proc/self/task/{os.getpid()}/children")

def has_started_another():
    # Before that, Python may be in its hooks around a fork, where it drops an interrupt.
    own = Path("/proc/self/cmdline").read_bytes()
    started = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children.read_text().split()]
    return any(line and line != own for line in started)

def interrupt():
    while not has_started_another():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    spark_session("local[1]", is_brief=True)
except KeyboardInterrupt:
    print("interrupted", children.read_text().split())
"""


def test_ctrl_c_while_java_starts_leaves_nothing_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.stdout == "interrupted []\n", done.stderr


def test_a_local_session_does_not_ask_for_this_machines_name(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.driver.host") == "localhost"
