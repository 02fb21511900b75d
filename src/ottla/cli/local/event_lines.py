"""One readable line for each important event of a running cluster, from the logs of its brokers."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAMED_MAX = 3
"""How many partitions are named; the others are counted."""
READ_BYTES_MAX = 1024 * 1024


@dataclass(slots=True)
class _Tail:
    """How far one broker's log was read."""

    broker: int
    path: Path
    position: int = 0
    inode: int = 0

    def news(self) -> Iterator[str]:
        """The lines since the last look; after a restart the log begins again."""
        try:
            seen = self.path.stat()
            if seen.st_ino != self.inode or seen.st_size < self.position:
                self.inode, self.position = seen.st_ino, 0
            with self.path.open("rb") as file:
                file.seek(self.position)
                read = file.read(READ_BYTES_MAX)
        except OSError:
            return
        whole = read[: read.rfind(b"\n") + 1]
        self.position += len(whole)
        yield from whole.decode("utf-8", errors="replace").splitlines()


_ISR = re.compile(r" isr partition=(?P<partition>\S+) .*isr=(?P<isr>[\d,]*) was=(?P<was>[\d,]*) ")
_TOLD: tuple[tuple[re.Pattern[str], Callable[[int, re.Match[str]], str]], ...] = (
    (
        re.compile(r" controller elected broker=\d+ epoch=(\d+)"),
        lambda broker, found: f"broker {broker} was elected controller, epoch {found[1]}",
    ),
    (
        re.compile(r" controller resigns broker=\d+ epoch=(\d+) reason=(.*)"),
        lambda broker, found: f"broker {broker} resigns as controller, epoch {found[1]}: {found[2]}",
    ),
    (
        re.compile(r" turn cause=(['\"])(.*)\1 decided=([1-9]\d*) ms=(\d+) "),
        lambda broker, found: (
            f"controller decided on {_partitions(int(found[3]))} in {found[4]} ms: {found[2]}"
        ),
    ),
    (
        re.compile(r" zookeeper session expired"),
        lambda broker, found: f"broker {broker} lost its ZooKeeper session",
    ),
    (
        re.compile(r" controlled shutdown broker="),
        lambda broker, found: f"broker {broker} begins its controlled shutdown",
    ),
    (re.compile(r" started broker="), lambda broker, found: f"broker {broker} has joined"),
    (
        re.compile(r" log directory offline directory=(\S+) reason=(.*)"),
        lambda broker, found: f"broker {broker} lost its log directory {found[1]}: {found[2]}",
    ),
)


@dataclass(slots=True)
class _IsrChanges:
    """ISR changes of one look, put together: a dead broker changes thousands."""

    partitions: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def take(self, found: re.Match[str]) -> None:
        isr, was = _brokers(found["isr"]), _brokers(found["was"])
        for verb, brokers in (("shrank: without", was - isr), ("grew: with", isr - was)):
            if brokers:
                key = (verb, " ".join(sorted(brokers, key=int)))
                self.partitions.setdefault(key, []).append(found["partition"])

    def lines(self, broker: int) -> Iterator[str]:
        for (verb, changed), partitions in self.partitions.items():
            named = ", ".join(partitions[:NAMED_MAX])
            more = f" and {len(partitions) - NAMED_MAX} more" if len(partitions) > NAMED_MAX else ""
            yield f"ISR {verb} broker {changed} in {named}{more} (leader {broker})"


class EventLines:
    """Reads along in the logs of some brokers."""

    def __init__(self, logs: Iterable[tuple[int, Path]]) -> None:
        self._tails = [_Tail(broker, path) for broker, path in logs]

    def news(self) -> Iterator[str]:
        """What happened since the last look."""
        for tail in self._tails:
            isr_changes = _IsrChanges()
            for line in tail.news():
                if found := _ISR.search(line):
                    isr_changes.take(found)
                    continue
                for pattern, tell in _TOLD:
                    if found := pattern.search(line):
                        yield tell(tail.broker, found)
                        break
            yield from isr_changes.lines(tail.broker)


def _brokers(text: str) -> set[str]:
    return {part for part in text.split(",") if part}


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
