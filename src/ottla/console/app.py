"""The console's routes: each page with its JSON twin, the stream of news, the files."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ottla.client.config import ClientConfig
from ottla.client.errors import ClientError, ConnectionLost
from ottla.console.change.act import Act
from ottla.console.change.elect import ELECT
from ottla.console.change.offsets import RESET
from ottla.console.change.pages import Acts
from ottla.console.change.produce import PRODUCE
from ottla.console.change.reassign import REASSIGN
from ottla.console.change.settings import CONFIGURE
from ottla.console.change.topics import CREATE, DELETE
from ottla.console.detail.brokers import broker_page, brokers_page
from ottla.console.detail.configs import configs_page
from ottla.console.detail.records import Asked, records_page
from ottla.console.detail.security import Asked as RightAsked
from ottla.console.detail.security import security_page
from ottla.console.detail.topics import topic_page, topics_page
from ottla.console.guard.middleware import Guard
from ottla.console.guard.token import Token
from ottla.console.live.events import events
from ottla.console.pages.about import about_page
from ottla.console.pages.balance import balance_page
from ottla.console.pages.groups import groups_page
from ottla.console.pages.leave import leave_page
from ottla.console.pages.metrics import metrics_text
from ottla.console.pages.overview import overview_page
from ottla.console.pages.partition import partition_page
from ottla.console.pages.partitions import partitions_page
from ottla.console.pages.replicas import packed, replicas_page
from ottla.console.pages.timeline import timeline_page
from ottla.console.read.groups import Groups
from ottla.console.read.looker import Looker
from ottla.console.read.world import World
from ottla.console.render import HERE, answer, refuse
from ottla.model.ids import TopicPartition

Page = Callable[[Request], Awaitable[Response]]
NUMBER_DIGITS_MAX = 9
PRESSED_FROM, PRESSED_LEVEL = 1_000, 5
"""Bytes from which answers are compressed, and how hard; streams of events never are."""
ACTS = (ELECT, REASSIGN, CONFIGURE, CREATE, DELETE, PRODUCE, RESET)


class Console:
    """One console: the world, who keeps it true, and the pages over it."""

    def __init__(
        self,
        config: ClientConfig,
        token: Token,
        allowed: Collection[str] = (),
        log: Callable[[str], None] = lambda line: None,
        *,
        shows_records: bool = True,
    ) -> None:
        # A client that goes on asking for a topic that was deleted would have it made again.
        config = replace(config, allow_auto_create_topics=False)
        self._config, self._allowed, self._shows_records = config, allowed, shows_records
        self.world = World()
        self.groups = Groups(self.world)
        self.looker = Looker(config, self.world, self.groups)
        self.token = token
        self.acts = Acts(
            self.world,
            token.form_token(),
            allowed,
            log,
            lambda: self.looker.client,
            lambda: self.looker.look_soon(),
        )

    def application(self) -> Guard:
        """What the server runs; nothing reaches a page but through the guard."""
        routes: list[BaseRoute] = [
            *self._page("/", "/index.json", self._overview),
            *self._page("/timeline", "/timeline.json", self._timeline),
            *self._page("/partitions", "/partitions.json", self._partitions),
            *self._page("/partitions/{topic}/{number}", "/partitions/{topic}/{number}.json", self._partition),
            *self._page("/brokers/{broker}/leave", "/brokers/{broker}/leave.json", self._leave),
            *self._page("/replicas", "/replicas.json", self._replicas),
            *self._page("/balance", "/balance.json", self._balance),
            *self._page("/groups", "/groups.json", self._groups),
            *(route for act in ACTS for route in self._act(act)),
            *self._page("/topics", "/topics.json", self._topics),
            *self._page("/topics/{topic}/records", "/topics/{topic}/records.json", self._records),
            *self._page("/topics/{topic}", "/topics/{topic}.json", self._topic),
            *self._page("/brokers", "/brokers.json", self._brokers),
            *self._page("/brokers/{broker}", "/brokers/{broker}.json", self._broker),
            *self._page("/configs", "/configs.json", self._configs),
            *self._page("/security", "/security.json", self._security),
            *self._page("/about", "/about.json", self._about),
            *self._page("/metrics", "/metrics.txt", self._metrics),
            Route("/replicas.bin", self._map),
            Route("/events", self._events),
            Mount("/static", StaticFiles(directory=HERE / "static")),
            Route("/{rest:path}", self._nothing),
        ]
        pressed = [Middleware(GZipMiddleware, minimum_size=PRESSED_FROM, compresslevel=PRESSED_LEVEL)]
        return Guard(Starlette(routes=routes, middleware=pressed, lifespan=self._lifespan), self.token)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(self.looker.run())
        try:
            yield
        finally:
            for task in (looking, *self.acts.going_on):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def _act(self, act: Act) -> list[BaseRoute]:
        async def page(request: Request) -> Response:
            return await self.acts.page(act, request)

        return self._page(act.path, f"{act.path}.json", page, methods=["GET", "POST"])

    def _page(self, path: str, twin: str, page: Page, methods: list[str] | None = None) -> list[BaseRoute]:
        async def seen(request: Request) -> Response:
            await self.looker.await_picture()
            if self.world.picture is None:
                why = self.world.trouble or "it has not been seen yet"
                return refuse(
                    request,
                    503,
                    f"The cluster does not answer: {why}.",
                    "Look with `ottla status` what runs, or name other brokers with --bootstrap-server.",
                )
            return await page(request)

        # The twin comes first: `1.json` would pass for the name of a partition.
        return [Route(twin, seen, methods=methods), Route(path, seen, methods=methods)]

    # ---- pages

    async def _overview(self, request: Request) -> Response:
        return answer(request, "overview.html", overview_page(self.world))

    async def _timeline(self, request: Request) -> Response:
        asked = request.query_params
        page = timeline_page(self.world, asked.get("from", ""), asked.get("to", ""), datetime.now(UTC))
        return answer(request, "timeline.html", page, 400 if page.problem else 200)

    async def _partitions(self, request: Request) -> Response:
        asked = request.query_params
        first = _number(asked.get("first", "")) or 0
        page = partitions_page(self.world, asked.get("q", ""), asked.get("kind", ""), first)
        return answer(request, "partitions.html", page)

    async def _partition(self, request: Request) -> Response:
        topic, number = request.path_params["topic"], _number(request.path_params["number"])
        with_isr = request.query_params.get("isr") == "1"
        name = None if number is None else TopicPartition(topic, number)
        page = None if name is None else partition_page(self.world, name, with_isr=with_isr)
        if page is None:
            shown = f"{topic}-{request.path_params['number']}"
            return refuse(
                request, 404, f"There is no partition {shown}.", "/partitions lists those there are."
            )
        return answer(request, "partition.html", page)

    async def _leave(self, request: Request) -> Response:
        broker = _number(request.path_params["broker"])
        is_crash = request.query_params.get("how") == "crash"
        page = None if broker is None else leave_page(self.world, broker, crash=is_crash)
        if page is None:
            return _no_broker(request)
        return answer(request, "leave.html", page)

    async def _replicas(self, request: Request) -> Response:
        return answer(request, "replicas.html", replicas_page(self.world))

    async def _map(self, request: Request) -> Response:
        """Names as JSON behind their length, then the cells."""
        await self.looker.await_picture()
        if self.world.picture is None:
            return Response(status_code=503)
        found = packed(self.world)
        head = msgspec.json.encode({"brokers": found.brokers, "names": found.names})
        body = len(head).to_bytes(4, "big") + head + found.cells
        return Response(body, media_type="application/octet-stream")

    async def _balance(self, request: Request) -> Response:
        return answer(request, "balance.html", balance_page(self.world))

    async def _groups(self, request: Request) -> Response:
        await self.groups.await_round()
        page = groups_page(self.world, self.groups, request.query_params.get("q", ""))
        return answer(request, "groups.html", page)

    async def _topics(self, request: Request) -> Response:
        asked = request.query_params
        page = topics_page(self.world, asked.get("q", ""), _number(asked.get("first", "")) or 0)
        return answer(request, "topics.html", page)

    async def _topic(self, request: Request) -> Response:
        page = topic_page(self.world, request.path_params["topic"])
        return _no_topic(request) if page is None else answer(request, "topic.html", page)

    async def _records(self, request: Request) -> Response:
        asked = msgspec.convert({k: v for k, v in request.query_params.items() if v}, Asked)
        topic = request.path_params["topic"]
        page = await records_page(self.world, self._config, topic, asked, is_allowed=self._shows_records)
        if page is None:
            return _no_topic(request)
        return answer(request, "records.html", page, 400 if page.problem else 200)

    async def _brokers(self, request: Request) -> Response:
        return answer(request, "brokers.html", brokers_page(self.world))

    async def _broker(self, request: Request) -> Response:
        broker = _number(request.path_params["broker"])
        page = None if broker is None else broker_page(self.world, broker)
        return _no_broker(request) if page is None else answer(request, "broker.html", page)

    async def _configs(self, request: Request) -> Response:
        client = self.looker.client
        try:
            if client is None:
                raise ConnectionLost("the cluster is not being looked at")
            page = await configs_page(self.world, client, request.query_params.get("q", ""))
        except ClientError as why:
            return refuse(
                request, 503, f"The brokers do not tell their settings: {why}.", "Load the page again."
            )
        return answer(request, "configs.html", page)

    async def _security(self, request: Request) -> Response:
        asked = msgspec.convert({k: v for k, v in request.query_params.items() if v}, RightAsked)
        client = self.looker.client
        try:
            if client is None:
                raise ConnectionLost("the cluster is not being looked at")
            page = await security_page(self.world, client, asked)
        except ClientError as why:
            return refuse(
                request, 503, f"The brokers do not tell their rules: {why}.", "Load the page again."
            )
        return answer(request, "security.html", page, 400 if page.problem else 200)

    async def _about(self, request: Request) -> Response:
        page = about_page(self.world, self._allowed, shows_records=self._shows_records)
        return answer(request, "about.html", page)

    async def _metrics(self, request: Request) -> Response:
        await self.groups.await_round(all_partitions=True)
        return Response(metrics_text(self.world, self.groups), media_type="text/plain; version=0.0.4")

    async def _events(self, request: Request) -> Response:
        number = _number(request.headers.get("last-event-id") or request.query_params.get("number", ""))
        stream = events(self.world, self.looker, self.world.number if number is None else number)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _nothing(self, request: Request) -> Response:
        return refuse(request, 404, "There is no such page.", "/ is the first one.")


def _no_broker(request: Request) -> Response:
    shown = request.path_params["broker"]
    return refuse(request, 404, f"There is no broker {shown}.", "/brokers lists those there are.")


def _no_topic(request: Request) -> Response:
    shown = request.path_params["topic"]
    return refuse(request, 404, f"There is no topic {shown}.", "/topics lists those there are.")


def _number(text: str) -> int | None:
    """Digits of ours; anything else is no number of anything."""
    if text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS_MAX:
        return int(text)
    return None
