"""Runs on a master whose executors do not have Ottla: reads while one of them is killed, then writes.

``spark_shipped.py MASTER SERVERS SOURCE TARGET ANSWERS``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ottla.spark.session import spark_session

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
TASKS = "24"


def executors(application: str) -> list[int]:
    """The processes of this application's executors."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # It has ended meanwhile.
        if EXECUTOR in words and application in words:
            found.append(int(file.parent.name))
    return sorted(found)


def kill_one_in_mid_job(spark: Any, killed: list[int]) -> None:
    """As soon as tasks have ended, but not all."""
    tracker = spark.sparkContext.statusTracker()
    while not killed:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and 0 < info.numCompletedTasks < info.numTasks:
                killed += executors(spark.sparkContext.applicationId)[:1]
                os.kill(killed[0], signal.SIGKILL)
                return
        time.sleep(0.01)


def main(master: str, servers: str, source: str, target: str, answers: Path) -> None:
    spark = spark_session(master, app_name="shipped", is_brief=True)

    def has_ottla(_: object) -> bool:
        import importlib.util

        spec = importlib.util.find_spec("ottla")
        return spec is not None and str(spec.origin).find(".zip") < 0

    installed = spark.sparkContext.parallelize(range(4), 4).map(has_ottla).collect()
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
    rows = reader.options(subscribe=source, minPartitions=TASKS).load().select("partition", "offset")
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_in_mid_job, args=(spark, killed), daemon=True)
    killer.start()
    read = sorted([row["partition"], row["offset"]] for row in rows.collect())
    written = spark.range(0, 1000, 1, 2).selectExpr("cast(id AS string) AS value").write.format("ottla")
    written.option("kafka.bootstrap.servers", servers).option("topic", target).mode("append").save()
    answers.write_text(json.dumps({"read": read, "killed": killed, "installed": installed}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
