"""Keeps the world true while somebody looks, and asks nothing when nobody does.

The topic ``__ottla_decisions`` is tailed: each change of a leader or an ISR is a record. A small question
every two seconds tells who is alive; a whole look follows when that or a record says that something happened,
and otherwise every 30 seconds (every 5 where no history is kept).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from ottla.client.admin.cluster import describe_cluster, describe_log_dirs
from ottla.client.admin.topics import describe_topics
from ottla.client.aio.client import Client, Consumer
from ottla.client.config import ClientConfig
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.console.read.groups import Groups
from ottla.console.read.world import RECORDS_AT_ONCE, RECORDS_KEPT, World
from ottla.insight.read.cluster import read_picture
from ottla.model.ids import TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.model.timestamps import EARLIEST, LATEST

IDLE_S = 60.0
"""So long after the last one looked, nothing is asked any more."""
PULSE_S = 2.0
WHOLE_S = 30.0
WHOLE_WITHOUT_HISTORY_S = 5.0
SIZES_S = 60.0
AFTER_NEWS_S = 0.2
"""How long to wait after a record before looking: more come with it."""
FIRST_LOOK_S_MAX = 8.0
ASK_MS_MAX = 6_000
POLL_MS = 1_000
LOG = TopicPartition(DECISIONS_TOPIC, 0)


class Looker:
    """One for all who look."""

    def __init__(self, config: ClientConfig, world: World, groups: Groups) -> None:
        self._config = config
        self._world = world
        self._groups = groups
        self._last_wanted = 0.0
        self._wanted = asyncio.Event()
        self._first_look = asyncio.Event()
        self._happened = asyncio.Event()
        self.asleep = asyncio.Event()
        """Nobody looks, and there is no connection to any broker."""
        self._caught_up = asyncio.Event()
        """All decisions that there were at the beginning are read, or there are none."""
        self._end = 0
        self.client: Client | None = None
        """While somebody looks."""

    def look_soon(self) -> None:
        """Something was changed from here."""
        self._happened.set()

    def somebody_looks(self) -> None:
        """A page was asked for, or a stream is open."""
        self._last_wanted = time.monotonic()
        self._wanted.set()

    async def await_picture(self) -> None:
        """Until there is a picture of this visit and its past, or they have failed to come."""
        self.somebody_looks()
        try:
            async with asyncio.timeout(FIRST_LOOK_S_MAX):
                await self._first_look.wait()
                if self._world.trouble is None:
                    await self._caught_up.wait()
        except TimeoutError:
            if not self._first_look.is_set():
                self._world.failed(f"no broker has answered in {FIRST_LOOK_S_MAX:.0f} s")

    async def run(self) -> None:
        """For ever: sleep while nobody looks, keep the world true while somebody does."""
        while True:
            self.asleep.set()
            await self._wanted.wait()
            self.asleep.clear()
            async with Client(self._config) as client, asyncio.TaskGroup() as group:
                self.client = client
                tasks = [
                    group.create_task(self._keep_picture(client)),
                    group.create_task(self._keep_history(client)),
                    group.create_task(self._keep_sizes(client)),
                    group.create_task(self._groups.run(client)),
                ]
                while time.monotonic() - self._last_wanted < IDLE_S:
                    await asyncio.sleep(1.0)
                self._wanted.clear()
                self._first_look.clear()
                self._caught_up.clear()
                self.client = None
                for task in tasks:
                    task.cancel()

    # ---- the picture

    async def _keep_picture(self, client: Client) -> None:
        while True:
            if await self._tried(self._look, client):
                await self._until_due(client)
            else:
                await asyncio.sleep(PULSE_S)
            self._first_look.set()

    async def _look(self, client: Client) -> None:
        self._world.requests += 3
        self._world.saw(await client.run(read_picture, timeout_ms=ASK_MS_MAX))
        self._first_look.set()

    async def _until_due(self, client: Client) -> None:
        """Until the next whole look: something happened, or it has been long."""
        began = time.monotonic()
        while True:
            try:
                await asyncio.wait_for(self._happened.wait(), PULSE_S)
                await asyncio.sleep(AFTER_NEWS_S)
                self._happened.clear()
                return
            except TimeoutError:
                pass
            if not await self._tried(self._pulse, client):
                return
            whole_s = WHOLE_S if self._world.has_history else WHOLE_WITHOUT_HISTORY_S
            if self._happened.is_set() or time.monotonic() - began >= whole_s:
                self._happened.clear()
                return

    async def _pulse(self, client: Client) -> None:
        """Who is alive, and who is the controller?"""
        self._world.requests += 1
        answer = await client.run(describe_cluster, timeout_ms=ASK_MS_MAX)
        picture = self._world.picture
        live = frozenset(broker.broker_id for broker in answer.brokers)
        if picture is None or live != picture.live or answer.controller_id != picture.controller:
            self._happened.set()
        else:
            self._world.is_still_so()

    # ---- the past

    async def _keep_history(self, client: Client) -> None:
        """Read the decisions there are, then each as it comes; begin again where the topic is made later."""
        position: int | None = None
        while True:
            try:
                if not await self._has_topic(client):
                    self._world.has_history = False
                    self._caught_up.set()
                    await asyncio.sleep(WHOLE_WITHOUT_HISTORY_S)
                    continue
                if position is None:
                    position = await self._beginning(client)
                self._world.has_history = True
                consumer = client.consumer(max_poll_records=RECORDS_AT_ONCE, auto_offset_reset="earliest")
                consumer.assign({LOG: self._world.next_record or position})
                await self._tail(consumer)
            except ClientError:
                await asyncio.sleep(PULSE_S)

    async def _has_topic(self, client: Client) -> bool:
        self._world.requests += 1
        found = await client.run(describe_topics, [DECISIONS_TOPIC], ASK_MS_MAX)
        return bool(found.topics) and not found.topics[0].error_code

    async def _beginning(self, client: Client) -> int:
        """The first record that is kept here; the timeline need not be older."""
        self._world.requests += 2
        first = (await client.run(list_offsets, {LOG: EARLIEST}))[LOG].offset
        self._end = (await client.run(list_offsets, {LOG: LATEST}))[LOG].offset
        return max(first, self._end - RECORDS_KEPT)

    async def _tail(self, consumer: Consumer) -> None:
        while True:
            if (consumer.position(LOG) or 0) >= self._end:
                self._caught_up.set()
            found = (await consumer.poll(POLL_MS)).get(LOG, [])
            if not found:
                continue
            self._world.recorded(
                [(record.key or b"", record.value) for record in found if record.value is not None]
            )
            self._world.next_record = consumer.position(LOG)
            self._happened.set()

    # ---- sizes

    async def _keep_sizes(self, client: Client) -> None:
        while True:
            await self._first_look.wait()
            await self._tried(self._read_sizes, client, is_quiet=True)
            await asyncio.sleep(SIZES_S)

    async def _read_sizes(self, client: Client) -> None:
        picture = self._world.picture
        assert picture is not None, "sizes are read after the first look"
        self._world.requests += len(picture.brokers)
        found = await client.run(describe_log_dirs, sorted(picture.brokers), None, ASK_MS_MAX)
        self._world.sizes = {
            (TopicPartition(topic.name, row.partition_index), broker): row.partition_size
            for broker, directories in found.items()
            for directory in directories
            for topic in directory.topics
            for row in topic.partitions
        }
        self._world.change()

    async def _tried(
        self, ask: Callable[[Client], Awaitable[None]], client: Client, *, is_quiet: bool = False
    ) -> bool:
        """Ask; a failure is noted, and the picture grows old."""
        try:
            await ask(client)
        except ClientError as error:
            if not is_quiet:
                self._world.failed(str(error))
                self._first_look.set()
            return False
        return True
