"""Records are text whatever they hold; a look ends at its limits and says how far it came."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.console.detail import records
from ottla.console.detail.records import Asked, Look, shown
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class LogOf:
    """In the place of a consumer: its records, a few at a time; positions move on over what is no record."""

    def __init__(self, logs: dict[TopicPartition, list[Record]], ends: dict[TopicPartition, int]) -> None:
        self._logs, self._ends = logs, ends
        self._positions: dict[TopicPartition, int] = {}

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self._positions = dict(positions)

    def position(self, name: TopicPartition) -> int | None:
        return self._positions.get(name)

    async def poll(self, _: int) -> dict[TopicPartition, list[Record]]:
        for name, at in self._positions.items():
            found = [record for record in self._logs[name] if record.offset >= at][:3]
            if found:
                self._positions[name] = found[-1].offset + 1
                return {name: found}
            self._positions[name] = self._ends[name]
        return {}


def a_log(count: int, first: int = 0, size: int = 1) -> list[Record]:
    return [Record(b"k%d" % n, b"v" * size, (), 1_000 + n, n) for n in range(first, first + count)]


def looked(
    begin: dict[TopicPartition, int], ends: dict[TopicPartition, int], limit: int, **asked: str
) -> Look:
    look = Look(begin, ends, limit)
    log: Any = LogOf({name: a_log(ends[name] + 5) for name in begin}, ends)
    asyncio.run(look.through(log, records._matcher(Asked(**asked))))
    return look


def test_a_look_reads_to_the_ends_there_were_when_it_began() -> None:
    look = looked({A0: 2, A1: 0}, {A0: 7, A1: 4}, 50)

    assert look.sentence() == "9 records of 9 looked at."
    assert look.words() == ["a-0: offsets 2 to 6, the end is 7", "a-1: offsets 0 to 3, the end is 4"]
    assert look.go_on(Asked()) is None


def test_a_look_stops_at_its_limit_and_goes_on_right_behind_it() -> None:
    look = looked({A0: 0}, {A0: 20}, 4, value="v")

    assert look.sentence() == "4 records of 4 looked at; stopped at 4 records."
    assert look.go_on(Asked(value="v", start="oldest")) == "partition=0&start=offset&at=4&limit=&key=&value=v"


def test_words_of_the_filter_are_bytes_to_be_found_and_no_expression() -> None:
    assert looked({A0: 0}, {A0: 20}, 50, key="k1").sentence() == "11 records of 20 looked at."
    assert looked({A0: 0}, {A0: 20}, 50, key="k.*").sentence() == "0 records of 20 looked at."


def test_a_look_stops_at_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BYTES_MAX", 10)

    assert looked({A0: 0}, {A0: 20}, 50, key="none").seen == 4


def test_a_log_that_ends_in_no_record_is_looked_at_to_its_end() -> None:
    look = Look({A0: 0}, {A0: 9}, 50)
    log: Any = LogOf({A0: a_log(5)}, {A0: 9})

    asyncio.run(look.through(log, lambda _: True))

    assert look.sentence() == "5 records of 5 looked at."


@pytest.mark.parametrize(
    ("value", "text", "is_text", "is_cut"),
    [
        (None, None, True, False),
        (b"", "", True, False),
        (b"a\tb\nc", "a\tb\nc", True, False),
        (b"\x00\x1b[2J", "\\x00\\x1b[2J", True, False),
        ("\u202eevil".encode(), "\\u202eevil", True, False),
        (b"\xff\x00", "ff 00", False, False),
        (b"x" * 3_000, "x" * 2_000, True, True),
        ("ä".encode() * 9_000, "ä" * 2_000, True, True),
        (b"x" + "ä".encode() * 9_000, "x" + "ä" * 1_999, True, True),
    ],
)
def test_bytes_are_shown_as_text_that_does_nothing(
    value: bytes | None, text: str | None, is_text: bool, is_cut: bool
) -> None:
    found = shown(value)

    assert (found.text, found.is_text, found.is_cut, found.bytes) == (
        text,
        is_text,
        is_cut,
        len(value or b""),
    )
