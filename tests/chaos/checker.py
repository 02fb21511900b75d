"""Compares what clients were told with what is there: the judge of a run, who knows nothing of how it went.

The rules are those of a log that many read and nobody may rewrite. An acknowledged record stands at its
offset for ever; a reader is given successive offsets, and everyone is given the same record at the same
offset; a record is in its partition once, and the records of one producer are in the order in which it sent
them; nobody reads what nobody sent; a group begins again where its last accepted commit stood. What retention
removed at the front must have been read by the reader that reads everything.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from chaos.history import Entry

KIND_MAX = 5
"""So many violations of one kind are told in words; the rest is counted."""
_SHIFT = 40
_NOBODY = -1


@dataclass(slots=True)
class Verdict:
    """What was found."""

    acknowledged: int = 0
    failed: int = 0
    final: int = 0
    clients_locked: int = 0
    """Clients that locked themselves (``workers/pulse.py``), and were replaced by new ones."""
    copied: int = 0
    """Copies that were committed, of a run with copiers."""
    fenced: int = 0
    """Copiers that were told that another has their place, or that they took too long."""
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def found(self, kind: str, text: str, count: int = 1) -> None:
        self.counts[kind] += count
        if self.counts[kind] <= KIND_MAX or count > 1:
            self.violations.append(f"{kind}: {text}")


class Truth:
    """What stood at each offset of one partition, by the word of acknowledgements and readers."""

    def __init__(self) -> None:
        self.values = array("q")

    def grow(self, end: int) -> None:
        if len(self.values) < end:
            self.values.extend([_NOBODY] * (end - len(self.values)))

    def learn(self, producer: int, seq: int, offset: int, count: int) -> int | None:
        """Take a run; the first offset at which something else was known, or None."""
        self.grow(offset + count)
        told = _run(producer, seq, count)
        known = self.values[offset : offset + count]
        if known != told:
            for index in range(count):
                if known[index] not in (_NOBODY, told[index]):
                    return offset + index
            self.values[offset : offset + count] = told
        return None


class Checker:
    """Takes a history, gives a verdict."""

    def __init__(self, history: Iterable[Entry], reader: str = "reader", final: str = "final") -> None:
        self._entries = list(history)
        self._reader, self._final = reader, final
        self.verdict = Verdict()
        self._truth: dict[int, Truth] = defaultdict(Truth)
        self._acked: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        self._unplaced: dict[int, list[int]] = defaultdict(list)
        """Acknowledged without a word on where: the client learnt it from the answer to a later batch."""
        self._sent: dict[int, list[int]] = {}

    def check(self) -> Verdict:
        self._take_producers()
        self._take_readers()
        self._check_final_log()
        self._check_commits()
        self._check_topics()
        self.verdict.clients_locked = sum(entry["did"] == "client locked" for entry in self._entries)
        for entry in self._entries:
            if entry["did"] == "client starved":
                text = f"{entry['who']} got no answer for long, though its client lived"
                self.verdict.found("starved", text)
            if entry["did"] == "two leaders":
                text = f"partition {entry['partition']}, epoch {entry['epoch']}: brokers {entry['leaders']}"
                self.verdict.found("two leaders in one epoch", text)
        return self.verdict

    # ---- what producers were told

    def _take_producers(self) -> None:
        for entry in self._entries:
            if entry["did"] == "sent":
                self._sent[entry["number"]] = entry["ends"]
            elif entry["did"] == "failed":
                self.verdict.failed += 1
            elif entry["did"] == "acked unplaced":
                for producer, seq, _, count in entry["runs"]:
                    self.verdict.acknowledged += count
                    self._unplaced[entry["partition"]] += [
                        producer << _SHIFT | each for each in range(seq, seq + count)
                    ]
            elif entry["did"] == "finished" and entry.get("unanswered"):
                text = f"{entry['who']} waits for {entry['unanswered']} answers after everything healed"
                self.verdict.found("unanswered", text, entry["unanswered"])
            elif entry["did"] == "acked":
                for producer, seq, offset, count in entry["runs"]:
                    self.verdict.acknowledged += count
                    self._acked[entry["partition"]].append((producer, seq, offset, count))
                    self._learn(entry, producer, seq, offset, count)

    def _learn(self, entry: Entry, producer: int, seq: int, offset: int, count: int) -> None:
        partition = entry["partition"]
        clash = self._truth[partition].learn(producer, seq, offset, count)
        if clash is not None:
            was = _shown(self._truth[partition].values[clash])
            now = f"record {seq + clash - offset} of producer {producer}"
            text = f"{partition}@{clash} was {was} and is {now} ({entry['did']} by {entry['who']})"
            self.verdict.found("changed", text)

    # ---- what readers were given

    def _take_readers(self) -> None:
        expected: dict[tuple[str, int], int | None] = {}
        for entry in self._entries:
            who = entry["who"]
            if entry["did"] == "assigned":
                for partition in entry["partitions"]:
                    offset = entry["offsets"].get(str(partition))
                    expected[who, partition] = None if offset is None else max(offset, 0)
            elif entry["did"] == "revoked":
                for partition in entry["partitions"]:
                    expected.pop((who, partition), None)
            elif entry["did"] == "read":
                for run in entry["runs"]:
                    self._take_run(entry, run, expected)

    def _take_run(
        self, entry: Entry, run: tuple[int, int, int, int], expected: dict[tuple[str, int], int | None]
    ) -> None:
        who, partition = entry["who"], entry["partition"]
        producer, seq, offset, count = run
        wanted = expected.get((who, partition))
        if wanted is not None and offset != wanted:
            kind = "nonmonotonic poll" if offset < wanted else "skipped by a poll"
            self.verdict.found(kind, f"{who} was given {partition}@{offset} and not {wanted}")
        expected[who, partition] = offset + count
        ends = self._sent.get(producer, [])
        if partition >= len(ends) or seq + count > ends[partition]:
            text = f"{who} read record {seq + count - 1} of producer {producer} at {partition}@{offset}"
            self.verdict.found("phantom", f"{text}, which was never sent")
            return
        self._learn(entry, producer, seq, offset, count)

    # ---- what is there in the end

    def _check_final_log(self) -> None:
        final: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        seen: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        for entry in self._entries:
            if entry["did"] == "read" and entry["who"] == self._final:
                final[entry["partition"]] += [tuple(run) for run in entry["runs"]]
            elif entry["did"] == "read" and entry["who"] == self._reader:
                seen[entry["partition"]] += [tuple(run) for run in entry["runs"]]
        for partition, truth in self._truth.items():
            log = _laid_out(final[partition], len(truth.values))
            self.verdict.final += sum(1 for value in log if value != _NOBODY)
            start = next((offset for offset, value in enumerate(log) if value != _NOBODY), len(log))
            self._check_lost(partition, truth, log, start)
            self._check_order(partition, final[partition])
            read = _laid_out(seen[partition], len(truth.values))
            there = {*log, *read} if self._unplaced[partition] else set()
            for value in self._unplaced[partition]:
                if value not in there:
                    self.verdict.found("lost", f"{_shown(value)}, acknowledged in partition {partition}")
            missed = sum(1 for offset in range(len(read)) if read[offset] == _NOBODY != truth.values[offset])
            if missed:
                self.verdict.found(
                    "unseen", f"{missed} records of partition {partition} were never read", missed
                )

    def _check_lost(self, partition: int, truth: Truth, log: array[int], start: int) -> None:
        for producer, seq, offset, count in self._acked[partition]:
            first = max(offset, start)
            skipped = first - offset
            if (
                log[first : offset + count]
                == _run(producer, seq + skipped, count - skipped)[: max(0, count - skipped)]
            ):
                continue
            gone = [
                at
                for at in range(first, offset + count)
                if log[at] != (producer << _SHIFT | seq + at - offset)
            ]
            text = f"record {seq} of producer {producer}, acknowledged at {partition}@{gone[0]}"
            self.verdict.found("lost", f"{text}, and those behind it: {len(gone)}", len(gone))
        vanished = sum(1 for at in range(start, len(log)) if log[at] == _NOBODY != truth.values[at])
        if vanished:
            self.verdict.found(
                "vanished", f"{vanished} records of partition {partition} were read once", vanished
            )

    def _check_order(self, partition: int, runs: list[tuple[int, int, int, int]]) -> None:
        ends: dict[int, int] = {}
        for producer, seq, offset, count in runs:
            end = ends.get(producer, 0)
            if seq < end:
                inside = self._is_repeated(runs, producer, seq, offset)
                kind = "duplicated" if inside else "reordered"
                text = f"record {seq} of producer {producer} at {partition}@{offset}, behind record {end - 1}"
                self.verdict.found(kind, text, min(count, end - seq) if inside else 1)
            ends[producer] = max(end, seq + count)

    @staticmethod
    def _is_repeated(runs: list[tuple[int, int, int, int]], producer: int, seq: int, offset: int) -> bool:
        return any(
            other == producer and first <= seq < first + count and at + seq - first != offset
            for other, first, at, count in runs
        )

    # ---- groups and topics

    def _check_commits(self) -> None:
        """A group that asks where it stood is never told less than what was accepted before it asked."""
        accepted: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for entry in self._entries:
            if entry["did"] == "committed":
                for partition, offset in entry["offsets"].items():
                    accepted[int(partition)].append((entry["t"], offset))
        for entry in self._entries:
            if entry["did"] != "assigned":
                continue
            for partition, offset in entry["offsets"].items():
                before = [o for t, o in accepted[int(partition)] if t <= entry["asked"]]
                if before and offset < max(before):
                    text = f"{entry['who']} was told {partition}@{offset}, {max(before)} had been accepted"
                    self.verdict.found("committed offset lost", text)

    def _check_topics(self) -> None:
        """Topics that were confirmed are there in the end; those whose deletion was confirmed are not."""
        created = {e["topic"] for e in self._entries if e["did"] == "created"}
        touched = {e["topic"] for e in self._entries if e["did"] == "deleting"}
        deleted = {e["topic"] for e in self._entries if e["did"] == "deleted"}
        for entry in self._entries:
            if entry["did"] == "topics":
                there = set(entry["topics"])
                for topic in sorted(created - touched - there):
                    self.verdict.found(
                        "topic lost", f"{topic} was created, {entry['broker']} does not know it"
                    )
                for topic in sorted(deleted & there):
                    self.verdict.found("topic came back", f"{topic} was deleted, {entry['broker']} knows it")


def _run(producer: int, seq: int, count: int) -> array[int]:
    first = producer << _SHIFT | seq
    return array("q", range(first, first + max(0, count)))


def _laid_out(runs: list[tuple[int, int, int, int]], end: int) -> array[int]:
    """Runs as one value an offset."""
    end = max([end, *(offset + count for _, _, offset, count in runs)])
    log = array("q", [_NOBODY]) * end
    for producer, seq, offset, count in runs:
        log[offset : offset + count] = _run(producer, seq, count)
    return log


def _shown(value: int) -> str:
    return f"record {value & (1 << _SHIFT) - 1} of producer {value >> _SHIFT}"
