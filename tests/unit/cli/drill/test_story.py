"""What the drill reads is everything, though new leaders let it wait."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli.drill import story
from ottla.cli.drill.story import REPLICAS, TOPIC, Drill
from ottla.client.fetching.offsets import FoundOffset
from ottla.model.ids import TopicPartition
from ottla.records.record import Record


class Hesitant:
    """A client and its consumer: the records come after some polls that find nothing."""

    def __init__(self, records: dict[TopicPartition, list[Record]], empty_polls: int) -> None:
        self._records = records
        self._empty_polls = empty_polls
        self._positions = dict.fromkeys(records, 0)

    def run(self, _: object, timestamps: dict[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        return {each: FoundOffset(len(self._records[each]), -1, 0) for each in timestamps}

    def consumer(self) -> Hesitant:
        return self

    def assign(self, _: object) -> None: ...

    def poll(self, _: int) -> dict[TopicPartition, list[Record]]:
        if self._empty_polls:
            self._empty_polls -= 1
            return {}
        partition = next((p for p, at in self._positions.items() if at < len(self._records[p])), None)
        if partition is None:
            return {}
        self._positions[partition] = len(self._records[partition])
        return {partition: self._records[partition]}

    def position(self, partition: TopicPartition) -> int:
        return self._positions[partition]


def test_all_is_read_after_polls_that_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        TopicPartition(TOPIC, number): [Record(None, b"%d-%d" % (number, n)) for n in range(2)]
        for number in REPLICAS
    }
    monkeypatch.setattr(story, "Cluster", lambda **_: None)
    drill: Any = Drill(lambda _: None)
    drill._client = Hesitant(records, empty_polls=3)

    assert sorted(drill._read()) == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
