"""All that the console knows: one picture, shared by all who look, and the recorded past."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from ottla.insight.delta import advanced
from ottla.insight.history.records import this_life
from ottla.insight.history.timeline import Timeline
from ottla.insight.picture import Picture
from ottla.insight.plan import Sizes
from ottla.model.ids import TopicPartition

RECORDS_KEPT = 20_000
"""Of ``__ottla_decisions``, for the pages of single partitions; older ones count in the timeline alone."""
RECORDS_AT_ONCE = 1_000
"""Decoded ones take ten times as much as what is kept."""

_decode = msgspec.json.Decoder().decode


class World:
    """Changed by the looker alone; pages and streams read it."""

    def __init__(self) -> None:
        self.picture: Picture | None = None
        self.number = 0
        """Goes up with every change that a page could show."""
        self.seen_at = 0.0
        """When the picture was last known to be true, on the clock of ``time.time``."""
        self.trouble: str | None = None
        """Why the last look failed; ``None`` if it did not."""
        self.has_history: bool | None = None
        """Whether decisions are recorded; ``None`` while that is not known."""
        self.timeline = Timeline()
        self.sizes: Sizes = {}
        self.requests = 0
        """How many were sent since the start, records of decisions not counted."""
        self.next_record: int | None = None
        """Where to go on reading decisions after a while in which nobody looked."""
        self._records: deque[tuple[bytes, bytes]] = deque(maxlen=RECORDS_KEPT)
        self._changed = asyncio.Event()

    def saw(self, picture: Picture) -> None:
        """A whole look succeeded."""
        before = self.picture
        if before is not None and picture.controller_epoch is None:
            picture = _with_epoch(picture, before.controller_epoch)
        had_trouble, self.trouble = self.trouble is not None, None
        self.seen_at = time.time()
        self.picture = picture
        if before != picture or had_trouble:
            self.change()

    def is_still_so(self) -> None:
        """The brokers answered, and nothing has changed."""
        self.seen_at = time.time()
        if self.trouble is not None:
            self.trouble = None
            self.change()

    def failed(self, why: str) -> None:
        """A look failed: the picture stays, and grows old."""
        if self.trouble != why:
            self.trouble = why
            self.change()

    def recorded(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """New records of decisions, by key and value, in the order of the log."""
        left = iter(records)
        while pairs := list(islice(left, RECORDS_AT_ONCE)):
            rows = [_decode(value) for _, value in pairs]
            self._records.extend(pairs)
            self.timeline.take(rows)
            if self.picture is not None:
                self.picture = advanced(self.picture, rows)
            self.change()

    def history_of(self, name: TopicPartition) -> list[dict[str, Any]]:
        """What is recorded of a partition's present life, oldest first."""
        wanted = str(name).encode()
        return this_life([_decode(value) for key, value in self._records if key == wanted])

    @property
    def age_s(self) -> float:
        return max(0.0, time.time() - self.seen_at)

    def change(self) -> None:
        """Wake whoever waits for news."""
        self.number += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def news(self, number: int) -> int:
        """Wait until the world is newer than this number; the number it has then."""
        while self.number <= number:
            await self._changed.wait()
        return self.number


def _with_epoch(picture: Picture, epoch: int | None) -> Picture:
    return replace(picture, controller_epoch=epoch)
