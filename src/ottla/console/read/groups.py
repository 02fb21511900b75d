"""Groups and offsets, in slices: names every ten seconds, offsets of fifty groups a second in rotation.

No page asks for every group: with thousands of them that is what makes others slow.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable

from ottla.client.admin.groups import list_group_offsets, list_groups
from ottla.client.aio.client import Client
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.console.read.world import World
from ottla.insight.lag import GroupLag, Point, Window, group_lag
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST

NAMES_S = 10.0
STARTS_S = 60.0
ROUND_S = 1.0
GROUPS_A_ROUND = 50
IDLE_S = 60.0
ASK_MS_MAX = 5_000
FIRST_ROUND_S_MAX = 5.0


class Groups:
    """What is known of groups; filled while somebody looks at them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.states: dict[str, str] = {}
        self.windows: dict[str, dict[TopicPartition, Window]] = {}
        self.lags: dict[str, GroupLag] = {}
        """Of each group as of its last turn: no page computes those of all groups."""
        self.ends: dict[TopicPartition, int] = {}
        self.starts: dict[TopicPartition, int] = {}
        self._wanted = asyncio.Event()
        self._first_round = asyncio.Event()
        self._all_until = self._until = 0.0
        self._rotation: deque[str] = deque()
        self._names_at = self._starts_at = float("-inf")

    async def await_round(self, *, all_partitions: bool = False) -> None:
        """Somebody looks: wait for the first round of this visit; metrics want every partition's ends."""
        self._until = time.monotonic() + IDLE_S
        if all_partitions:
            if self._all_until < time.monotonic():
                self._first_round.clear()
                self._starts_at = float("-inf")
            self._all_until = self._until
        self._wanted.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._first_round.wait(), FIRST_ROUND_S_MAX)

    async def run(self, client: Client) -> None:
        """Rounds while somebody looks."""
        while True:
            await self._wanted.wait()
            try:
                await self._round(client)
                self._first_round.set()
            except ClientError:
                pass  # The looker tells what is wrong with the cluster.
            await asyncio.sleep(ROUND_S)
            if time.monotonic() > self._until:
                self._wanted.clear()
                self._first_round.clear()

    async def _round(self, client: Client) -> None:
        if time.monotonic() - self._names_at >= NAMES_S:
            self._world.requests += len(self._world.picture.brokers) if self._world.picture else 1
            found = await client.run(list_groups, timeout_ms=ASK_MS_MAX)
            self.states = {row.group_id: row.group_state for row in found}
            self.windows = {name: held for name, held in self.windows.items() if name in self.states}
            self.lags = {name: lag for name, lag in self.lags.items() if name in self.states}
            self._names_at = time.monotonic()
        committed = await self._committed(client, self._next_names())
        wanted = {name for held in committed.values() for name in held}
        if time.monotonic() < self._all_until and self._world.picture is not None:
            wanted |= self._world.picture.partitions.keys()
        await self._read_ends(client, wanted)
        now_ms = round(time.time() * 1000)
        for group, held in committed.items():
            windows = self.windows.setdefault(group, {})
            for name, offset in held.items():
                if name in self.ends:
                    windows.setdefault(name, Window()).take(Point(now_ms, offset, self.ends[name]))
            self.lags[group] = group_lag(windows.values())
        if committed:
            self._world.change()

    def _next_names(self) -> list[str]:
        """The next slice; everybody's turn comes before anybody's second."""
        if not self._rotation:
            self._rotation.extend(sorted(self.states))
        return [self._rotation.popleft() for _ in range(min(GROUPS_A_ROUND, len(self._rotation)))]

    async def _committed(self, client: Client, names: Iterable[str]) -> dict[str, dict[TopicPartition, int]]:
        """Committed offsets; a group whose coordinator is away has its turn again later."""
        found = {}
        for name in names:
            self._world.requests += 1
            try:
                rows = await client.run(list_group_offsets, name, timeout_ms=ASK_MS_MAX)
            except ClientError:
                continue
            found[name] = {
                partition: row.committed_offset
                for partition, row in rows.items()
                if not row.error_code and row.committed_offset >= 0
            }
        return found

    async def _read_ends(self, client: Client, wanted: set[TopicPartition]) -> None:
        """Ends of partitions that have a leader: one request a leader, not one a group."""
        picture = self._world.picture
        if picture is None:
            return
        led = {
            name
            for name in wanted
            if (seen := picture.partitions.get(name)) is not None and seen.leader in picture.live
        }
        if not led:
            return
        self._world.requests += len(picture.brokers)
        ends = await client.run(list_offsets, dict.fromkeys(led, LATEST), timeout_ms=ASK_MS_MAX)
        self.ends.update({name: row.offset for name, row in ends.items()})
        if time.monotonic() < self._all_until and time.monotonic() - self._starts_at >= STARTS_S:
            starts = await client.run(list_offsets, dict.fromkeys(led, EARLIEST), timeout_ms=ASK_MS_MAX)
            self.starts.update({name: row.offset for name, row in starts.items()})
            self._starts_at = time.monotonic()
