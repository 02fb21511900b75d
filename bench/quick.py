"""The ten rows that matter, in a few minutes: Ottla, Apache and Kafka in KRaft mode, three brokers each.

Processor time stands beside wall time: the first hardly moves with what else the machine does, the second
does. All sides are warmed up with the same load, take turns, and give the median of their rounds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _kraft import kraft_brokers
from _sides import Side, compare_with, median, running_sides, settle, touch_memory
from bars import QUICK
from confluent_kafka import Producer
from history import record

LOAD = str(Path(__file__).parent / "_load.py")
SMALL = ("--records", "1", "--acks", "1", "--in-flight", "5")
"""1 KiB, acks=1, five in flight."""
ALONE = ("--records", "1", "--in-flight", "1")
FETCH = ("--fetch", "--in-flight", "1")
BATCH_MB = 0.016

Figures = dict[str, dict[str, list[float]]]


def main() -> int:
    """Measure in turns, print, keep; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10_000, help="of a KiB each, produced and read")
    parser.add_argument("--megabytes", type=int, default=60, help="to three replicas")
    parser.add_argument("--sides", default="ottla,apache,kraft")
    parser.add_argument("--against", type=Path, help="another clone of Ottla as the only peer")
    parser.add_argument("--no-history", action="store_true", help="only a try: keep no figures")
    arguments = parser.parse_args()
    names = arguments.sides.split(",")
    if arguments.against:
        names = ["ottla", compare_with(arguments.against)]
    touch_memory(1)
    figures: Figures = {}
    with clusters(names) as sides:
        for side in sides:
            round_of(side, "warm", 2 * arguments.requests, arguments.megabytes)
        for number in range(arguments.rounds):
            for side in sides if number % 2 == 0 else sides[::-1]:
                for row, value in round_of(
                    side, str(number), arguments.requests, arguments.megabytes
                ).items():
                    figures.setdefault(row, {}).setdefault(side.name, []).append(value)
        for side in sides:
            figures.setdefault("memory after load, MB", {})[side.name] = [side.memory_mb()]
    numbers = {row: {name: median(seen) for name, seen in by.items()} for row, by in figures.items()}
    if not arguments.no_history and not arguments.against:
        record("quick", numbers)
    return 1 if show(numbers, figures, names) else 0


@contextmanager
def clusters(names: list[str]) -> Iterator[list[Side]]:
    """These sides, all running."""
    with (
        tempfile.TemporaryDirectory(prefix="ottla-quick-") as directory,
        running_sides([name for name in names if name != "kraft"]) as sides,
    ):
        if "kraft" not in names:
            yield sides
            return
        settings = {"offsets.topic.replication.factor": 3, "auto.create.topics.enable": "false"}
        kraft = Side("kraft", kraft_brokers(Path(directory), 3, **settings))
        try:
            kraft.start()
            yield [*sides, kraft]
        finally:
            kraft.stop()


def round_of(side: Side, name: str, requests: int, megabytes: int) -> dict[str, float]:
    """All rows once, over topics of their own."""
    one, three = f"one-{name}", f"three-{name}"
    for topic, partitions, replicas in ((one, 1, 1), (three, 3, 3)):
        side.create(topic, partitions, replicas)
        until_led(side, topic, partitions)
    seen = measure(side, one, three, requests, megabytes)
    side.delete(one)
    side.delete(three)
    settle()
    return seen


def until_led(side: Side, topic: str, partitions: int) -> None:
    """A new topic's leaders may hear of it later than the broker that tells of them: wait for a record."""
    producer = Producer({"bootstrap.servers": side.bootstrap, "acks": "all", "log_level": 0})
    for partition in range(partitions):
        producer.produce(topic, b"first", partition=partition)
    assert producer.flush(60) == 0, f"{side.name} does not lead {topic}"


def measure(side: Side, one: str, three: str, requests: int, megabytes: int) -> dict[str, float]:
    """All rows once."""
    rows: dict[str, float] = {}
    seen, user, system = load(side, one, requests, *SMALL)
    rows["produce 1 KiB acks=1, user us a request"] = user * 1e6 / requests
    rows["produce 1 KiB acks=1, system us a request"] = system * 1e6 / requests
    rows["produce 1 KiB acks=1, requests/s"] = requests / seen["seconds"]
    seen, user, system = load(side, one, requests, *FETCH)
    rows["fetch 1 KiB, user us a request"] = user * 1e6 / requests
    seen, user, system = load(side, three, int(megabytes / BATCH_MB))
    rows["produce 16 KiB RF 3 acks=all, user ms a MB"] = user * 1e3 / megabytes
    rows["produce 16 KiB RF 3 acks=all, system ms a MB"] = system * 1e3 / megabytes
    rows["produce 16 KiB RF 3 acks=all, MB/s"] = megabytes / seen["seconds"]
    rows["one record acks=1, p50 us"] = load(side, one, requests // 5, *ALONE, "--acks", "1")[0]["p50_us"]
    rows["one record RF 3 acks=all, p50 us"] = load(side, three, requests // 5, *ALONE)[0]["p50_us"]
    return rows


def load(side: Side, topic: str, requests: int, *options: str) -> tuple[dict[str, float], float, float]:
    """What the generator saw, and what the brokers computed meanwhile: user and system seconds."""
    leaders = [f"{partition}={address}" for partition, address in side.leaders(topic).items()]
    before = side.user_and_system()
    printed = subprocess.check_output(
        [sys.executable, LOAD, topic, str(requests), *leaders, *options], text=True
    )
    after = side.user_and_system()
    return json.loads(printed), after[0] - before[0], after[1] - before[1]


def show(numbers: dict[str, dict[str, float]], figures: Figures, names: list[str]) -> list[str]:
    """A line for each row, with the spread of our own rounds; the rows that miss their bar."""
    missed = []
    print(f"{'':<46}" + "".join(f"{name:>10}" for name in names) + f"{'(range)':>18}  bar")
    for row, by in numbers.items():
        ours, bar = figures[row][names[0]], QUICK.get(row)
        verdict = ""
        if bar is not None:
            is_met = bar.is_met(by[names[0]], by[names[-1]])
            verdict = f"{bar.sign} {bar.number}" + ("" if is_met else "  MISSED")
            missed += [] if is_met else [row]
        span = f"({min(ours):.1f}-{max(ours):.1f})"
        print(f"{row:<46}" + "".join(f"{by[name]:>10.1f}" for name in names) + f"{span:>18}  {verdict}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
