"""From nothing to a first record: ``ottla up`` and the fixture, on the built-in keeper and on Apache's.

All times are seconds, medians of ``--rounds`` starts; the two ZooKeepers take turns. *First record* begins
with the command and ends when a record with acks=all is acknowledged on a topic with as many replicas as
brokers. Memory is the proportional share of all processes that the command started, and its own.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from _sides import median
from bars import START
from history import record

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.launch.ports import free_ports
from support.running.bytecode import keep_bytecode

ROUNDS = 5
LIMIT_S = 60.0
ZOOKEEPERS = ("keeper", "apache")
OTTLA = Path(sys.executable).with_name("ottla")
FIXTURE = """
import sys, time
begun = time.perf_counter()
from ottla.testing import start_cluster
with start_cluster(int(sys.argv[1]), zookeeper=sys.argv[2]):
    print(time.perf_counter() - begun)
"""

Figures = dict[str, list[float]]


def main() -> int:
    """Measure in turns, print the rows, keep them; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-history", action="store_true")
    given = parser.parse_args()
    keep_bytecode()
    figures: dict[str, Figures] = {name: defaultdict(list) for name in ZOOKEEPERS}
    for _ in range(given.rounds):
        for brokers in (3, 1):
            for zookeeper in ZOOKEEPERS:
                up(brokers, zookeeper, figures[zookeeper])
                fixture(brokers, zookeeper, figures[zookeeper])
    numbers = {name: {row: round(median(seen), 2) for row, seen in figures[name].items()} for name in figures}
    missed = show(numbers, figures["keeper"])
    if not given.no_history:
        record("start", {"rounds": given.rounds, **numbers})
    return 1 if missed else 0


def show(numbers: dict[str, dict[str, float]], seen: Figures) -> list[str]:
    """A line for each row; those that miss their bar."""
    print(f"{'':<40}{'keeper':>8}{'(range)':>16}{'apache':>8}   bar")
    missed = []
    for row, ours in numbers["keeper"].items():
        bar = START.get(row)
        span = f"({min(seen[row]):.2f}-{max(seen[row]):.2f})"
        limit = "" if bar is None else f"{bar.sign} {bar.number}"
        print(f"{row:<40}{ours:>8.2f}{span:>16}{numbers['apache'][row]:>8.2f}   {limit}")
        if bar is not None and not bar.is_met(ours):
            missed.append(row)
    for row in missed:
        print(f"bar missed: {row}")
    return missed


def up(brokers: int, zookeeper: str, figures: Figures) -> None:
    """``ottla up`` from the command to a record, and what it takes in memory then."""
    [port, *_] = _row_of_ports(brokers)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as directory:
        words = ["--brokers", str(brokers), "--port", str(port), "--data-dir", f"{directory}/data"]
        begun = time.perf_counter()
        with subprocess.Popen(
            [OTTLA, "up", *words, "--zookeeper", zookeeper], stdout=subprocess.DEVNULL
        ) as command:
            try:
                state = Path(directory, "data", "up.json")
                until(state.exists)
                ready = time.perf_counter()
                first_record(json.loads(state.read_text())["bootstrap_servers"], brokers)
                done = time.perf_counter()
                memory_mb = sum(map(_share_mb, _tree(command.pid)))
            finally:
                command.send_signal(signal.SIGTERM)
    name = f"ottla up, {_counted(brokers)}"
    figures[f"{name}: ready, s"].append(ready - begun)
    figures[f"{name}: first record, s"].append(done - begun)
    figures[f"{name}: memory, MB"].append(memory_mb)


def fixture(brokers: int, zookeeper: str, figures: Figures) -> None:
    """What the first test waits for the fixture."""
    printed = subprocess.run(
        [sys.executable, "-c", FIXTURE, str(brokers), zookeeper], capture_output=True, text=True, check=True
    ).stdout
    figures[f"fixture, {_counted(brokers)}, s"].append(float(printed))


def first_record(bootstrap_servers: str, replicas: int) -> None:
    with Client(bootstrap_servers) as client:
        client.run(create_topics, [a_topic("first", partitions=1, replication_factor=replicas)])
        producer = client.producer()
        producer.wait(producer.send("first", b"record"))


def until(is_so: object) -> None:
    """Look again and again, as closely as a start must be seen."""
    assert callable(is_so)
    give_up = time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > give_up:
            raise TimeoutError(f"not within {LIMIT_S:.0f} s")
        time.sleep(0.002)


def _row_of_ports(count: int) -> list[int]:
    """Free ports one after the other, most likely: ``ottla up`` replaces one that is not."""
    first = free_ports(1)[0]
    return [first + number for number in range(count)]


def _counted(brokers: int) -> str:
    return "1 broker" if brokers == 1 else f"{brokers} brokers"


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*"):
            found += map(int, (task / "children").read_text().split())
    return found


def _share_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
