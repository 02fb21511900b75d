"""The page of an act: its form, the preview of what it would do, and what came of it."""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ottla.client.aio.client import Client
from ottla.client.errors import ClientError
from ottla.console.change.act import Act, At, CannotAct, Change, Field, Filled, Outcome, Plan, Previews
from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.console.render import answer
from ottla.insight.read.cluster import read_picture
from ottla.insight.wording import counted, time_text

ROWS_SHOWN = 100
LOGGED_MAX = 500
LOOK_MS_MAX = 10_000


class ActPage(msgspec.Struct, frozen=True):
    """The form, and if it was filled in, what would be or what was done."""

    frame: Frame
    name: str
    path: str
    title: str
    verb: str
    does_harm: bool
    is_open: bool
    """Whether ``--allow`` names it."""
    fields: tuple[Field, ...]
    filled: dict[str, str]
    problem: str | None
    sentence: str | None
    changes: list[Change]
    changes_more: int
    cannot: list[Change]
    cannot_more: int
    mark: str | None
    csrf: str
    outcomes: list[Outcome] | None
    outcomes_more: int


class Acts:
    """All acts, and which of them are open."""

    def __init__(
        self,
        world: World,
        csrf: str,
        opened: Collection[str],
        log: Callable[[str], None],
        client: Callable[[], Client | None],
        acted: Callable[[], None],
    ) -> None:
        self._world, self._csrf, self._opened = world, csrf, frozenset(opened)
        self._log, self._client, self._acted = log, client, acted
        self._previews = Previews(csrf)
        self.going_on: set[asyncio.Task[None]] = set()
        """What acts left to be done later."""

    async def page(self, act: Act, request: Request) -> Response:
        """``GET``: what would be. ``POST``: do it, if it is what was shown."""
        told = dict(request.query_params)
        if request.method == "POST":
            told = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
        # Browsers end the lines of a form with two characters.
        filled = {one.name: told.get(one.name, "").replace("\r\n", "\n") for one in act.fields}
        filled |= {name: str(value) for name, value in request.path_params.items()}
        if request.method == "POST":
            return await self._done(act, request, filled, told.get("mark", ""))
        return await self._shown(act, request, filled)

    async def _shown(self, act: Act, request: Request, filled: Filled) -> Response:
        # A form of one field that may stay empty, or of none, is filled in already.
        if not act.is_filled(filled) or (not request.query_params and len(act.fields) > 1):
            return self._answer(act, request, filled)
        try:
            plan = await self._planned(act, filled)
        except (CannotAct, ClientError) as why:
            return self._answer(act, request, filled, problem=_sentence(why), status=409)
        return self._answer(act, request, filled, plan)

    async def _done(self, act: Act, request: Request, filled: Filled, mark: str) -> Response:
        if act.name not in self._opened:
            self._tell(act, request, filled, "refused: closed")
            return self._answer(act, request, filled, problem=closed(act.name), status=403)
        try:
            plan = await self._planned(act, filled)
            why = self._previews.refusal(mark, act, filled, plan)
            if why is None and plan.work is None:
                why = "There is nothing to do."
            if why is not None or plan.work is None:
                self._tell(act, request, filled, f"refused: {why}")
                return self._answer(act, request, filled, plan, problem=why, status=409)
            self._previews.done(mark)
            outcomes = await plan.work()
        except (CannotAct, ClientError) as failed:
            self._tell(act, request, filled, f"failed: {failed}")
            return self._answer(act, request, filled, problem=_sentence(failed), status=409)
        self._acted()
        failed_ones = [one for one in outcomes if not one.done]
        said = f"{len(outcomes) - len(failed_ones)} done, {len(failed_ones)} refused by the cluster"
        first = failed_ones or outcomes
        self._tell(act, request, filled, said + (f" ({first[0].what}: {first[0].said})" if first else ""))
        return self._answer(act, request, filled, plan, outcomes=outcomes)

    async def _planned(self, act: Act, filled: Filled) -> Plan:
        client = self._client()
        if client is None:
            raise CannotAct("The cluster is not being looked at; load the page again.")
        self._world.requests += 3
        picture = await client.run(read_picture, timeout_ms=LOOK_MS_MAX)
        return await act.plan(At(client, picture, self._world.sizes, self._told, self._go_on), filled)

    def _go_on(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.going_on.add(task)
        task.add_done_callback(self.going_on.discard)

    def _answer(
        self,
        act: Act,
        request: Request,
        filled: Filled,
        plan: Plan | None = None,
        *,
        problem: str | None = None,
        outcomes: list[Outcome] | None = None,
        status: int = 200,
    ) -> Response:
        changes, cannot = (plan.changes, plan.cannot) if plan else ([], [])
        may = plan is not None and plan.work is not None and outcomes is None
        kept = {one.name: filled[one.name] for one in act.fields}
        page = ActPage(
            frame_of(self._world, act.title, act.command(filled)),
            act.name,
            request.url.path.removesuffix(".json"),
            act.title,
            act.verb,
            act.does_harm,
            act.name in self._opened,
            act.fields,
            kept,
            problem,
            _done_sentence(outcomes) if outcomes is not None else plan.sentence if plan else None,
            changes[:ROWS_SHOWN],
            max(0, len(changes) - ROWS_SHOWN),
            cannot[:ROWS_SHOWN],
            max(0, len(cannot) - ROWS_SHOWN),
            self._previews.shown(act, filled, plan) if may and plan else None,
            self._csrf,
            None if outcomes is None else _worst_first(outcomes)[:ROWS_SHOWN],
            max(0, len(outcomes or ()) - ROWS_SHOWN),
        )
        return answer(request, "act.html", page, status)

    def _tell(self, act: Act, request: Request, filled: Filled, said: str) -> None:
        """One line: when, who, what, with what answer; whatever was typed stays on that line."""
        who = f"{request.client.host}:{request.client.port}" if request.client else "unknown"
        self._told(f"{who} {act.path} {urlencode(filled)[:LOGGED_MAX]}: {said[:LOGGED_MAX]}")

    def _told(self, line: str) -> None:
        stamp = time_text(time.time_ns() // 1_000_000)
        self._log(f"{stamp} {line.encode('unicode_escape').decode('ascii')}")


def closed(name: str) -> str:
    """What opens it."""
    return f"This console may not do that: start it with --allow {name}."


def _sentence(why: Exception) -> str:
    text = str(why)
    return text if isinstance(why, CannotAct) else f"The cluster refuses: {text}."


def _done_sentence(outcomes: list[Outcome]) -> str:
    bad = sum(not one.done for one in outcomes)
    if not bad:
        return f"Done: {counted(len(outcomes), 'change')}."
    return f"{counted(len(outcomes) - bad, 'change')} done, {bad:,} refused by the cluster."


def _worst_first(outcomes: list[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda one: one.done)
