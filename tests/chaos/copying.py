"""Copiers under fire: processes that copy in transactions, what is done to them, what must come of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException

from chaos.checker import Verdict
from chaos.crew import Worker
from chaos.history import Entry
from chaos.workers.common import QUICK, Task
from support.clusters.watermarks import watermarks

COPIES = "chaos-copies"
GROUP = "copiers"
READER, FINAL = "copied", "final"


class Copiers:
    """All processes; of one transactional id there may be several, all but the newest of them zombies."""

    def __init__(self, bootstrap: str, source: str, partitions: int, histories: Path, random: Random) -> None:
        self.histories = histories / "copies"
        self.histories.mkdir(parents=True)
        self._bootstrap = bootstrap
        self._source = source
        self._partitions = partitions
        self._random = random
        self._numbers = count()
        self._living: list[Worker] = []
        self._readers: list[Worker] = []
        self._is_stopped = False

    def start(self, copiers: int) -> None:
        for number in range(copiers):
            self.hire(f"copier-{number}")
        self._read(READER)

    def hire(self, transactional_id: str) -> None:
        """One more process of this id."""
        options = {"transactional_id": transactional_id, "group": GROUP, "target": COPIES}
        name = f"{transactional_id}-{next(self._numbers)}"
        task = Task("copier", name, self._bootstrap, self._source, self._partitions, self.histories, options)
        self._living.append(Worker(task))

    def _read(self, name: str) -> None:
        task = Task("committed", name, self._bootstrap, COPIES, self._partitions, self.histories, {})
        self._readers.append(Worker(task))

    def tend(self) -> None:
        """Start those again of which no process is left."""
        if self._is_stopped:
            return
        ids = {_id_of(each) for each in self._living}
        self._living = [each for each in self._living if each.wait(0) is None]
        for transactional_id in sorted(ids - {_id_of(each) for each in self._living}):
            self.hire(transactional_id)

    # ---- what is done to them

    def kinds(self) -> dict[str, Callable[[], tuple[str, Callable[[], None], Callable[[], None], float]]]:
        """Each gives its words, how to begin it, how to undo it, and how long it lasts."""
        return {"copier killed": self._kill, "copier frozen": self._freeze, "copier replaced": self._replace}

    def _one(self) -> Worker:
        return self._random.choice(self._living)

    def _kill(self) -> tuple[str, Callable[[], None], Callable[[], None], float]:
        worker = self._one()
        return f"{worker.task.name} killed", worker.kill, self.tend, self._random.uniform(0, 4)

    def _freeze(self) -> tuple[str, Callable[[], None], Callable[[], None], float]:
        """Short against its transaction's time-out, or longer."""
        worker = self._one()
        return f"{worker.task.name} frozen", worker.pause, worker.resume, self._random.uniform(0.5, 9)

    def _replace(self) -> tuple[str, Callable[[], None], Callable[[], None], float]:
        """It stands still, another takes its id over, and then it goes on."""
        worker = self._one()

        def begin() -> None:
            worker.pause()
            self.hire(_id_of(worker))

        return f"{worker.task.name} replaced", begin, worker.resume, self._random.uniform(1, 9)

    # ---- the end

    def stop(self) -> list[Worker]:
        self._is_stopped = True
        for worker in self._living:
            worker.stop()
        return self._living

    def read_to(self, ends: dict[int, int]) -> list[Worker]:
        """Both readers, the one that was there from the beginning and a new one, to these offsets."""
        self._read(FINAL)
        for worker in self._readers:
            worker.drain(ends)
        return self._readers

    def kill(self) -> None:
        for worker in (*self._living, *self._readers):
            worker.kill()

    def are_stable(self, topic: str, partitions: int) -> bool:
        """Whether no transaction is open in what a topic holds now."""
        last = self.ends(topic, partitions, is_stable=False)
        stable = self.ends(topic, partitions, is_stable=True)
        return bool(last and stable) and all(stable[each] >= last[each] for each in last)

    def ends(self, topic: str, partitions: int, *, is_stable: bool) -> dict[int, int]:
        """Where each partition ends, or is stable up to; empty while nobody says so."""
        isolation = "read_committed" if is_stable else "read_uncommitted"
        config = {"bootstrap.servers": self._bootstrap, "group.id": "ends", "isolation.level": isolation}
        consumer = Consumer({**config, **QUICK})
        try:
            return {each: watermarks(consumer, topic, each)[1] for each in range(partitions)}
        except KafkaException:
            return {}
        finally:
            consumer.close()


def _id_of(worker: Worker) -> str:
    return str(worker.task.options["transactional_id"])


def check_copies(source: Iterable[Entry], copies: Iterable[Entry], reader: str, verdict: Verdict) -> None:
    """Every record was copied exactly once, in order; nobody was given anything else, at any time.

    ``source`` is the history with the log's last word on what was there to copy, by ``reader``.
    """
    wanted = _records(entry for entry in source if entry["who"] == reader)
    copies = list(copies)
    found = {who: _records(entry for entry in copies if entry["who"] == who) for who in (READER, FINAL)}
    for partition, records in wanted.items():
        there = found[FINAL].get(partition, [])
        verdict.copied += len(there)
        _compare(partition, [value for _, value in records], [value for _, value in there], verdict)
        if found[READER].get(partition, []) != there:
            text = f"in partition {partition} the reader was given {len(found[READER].get(partition, []))}"
            verdict.found("copies changed", f"{text} copies, and {len(there)} are there in the end")
    for entry in copies:
        if entry["did"] == "broke":
            verdict.found("copier broke", f"{entry['who']}: {entry['why']}")
        verdict.fenced += entry["did"] == "fenced"


def _compare(
    partition: int, wanted: list[tuple[int, int]], there: list[tuple[int, int]], verdict: Verdict
) -> None:
    if wanted == there:
        return
    pairs = enumerate(zip(wanted, there, strict=False))
    at = next((n for n, pair in pairs if pair[0] != pair[1]), min(len(wanted), len(there)))
    expected = wanted[at] if at < len(wanted) else "nothing"
    copy = there[at] if at < len(there) else "nothing"
    text = f"copy {at} in partition {partition} is {copy} and not {expected} (producer, number)"
    verdict.found("copied wrongly", f"{text}; {len(there)} copies of {len(wanted)} records")


def _records(entries: Iterable[Entry]) -> dict[int, list[tuple[int, tuple[int, int]]]]:
    """Offset, and producer and number, of everything that was read, by partition."""
    found: dict[int, list[tuple[int, tuple[int, int]]]] = defaultdict(list)
    for entry in entries:
        if entry["did"] == "read":
            for producer, seq, offset, many in entry["runs"]:
                found[entry["partition"]] += [(offset + n, (producer, seq + n)) for n in range(many)]
    return found
