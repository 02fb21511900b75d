"""What an act is: fields to fill in, a plan of what would change, and the doing of just that."""

import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field

import msgspec

from ottla.client.aio.client import Client
from ottla.insight.picture import Picture
from ottla.insight.plan import Sizes
from ottla.model.errors import ErrorCode

NAMES = ("elect", "reassign", "configs", "topics", "produce", "groups")
"""What ``--allow`` opens."""
PREVIEWS_KEPT = 1_000

Filled = Mapping[str, str]


class CannotAct(Exception):
    """Why there is no plan: one sentence, with the next step."""


class Field(msgspec.Struct, frozen=True):
    """One field of an act's form."""

    name: str
    label: str
    kind: str = "text"
    """``text``, ``area``, or ``choice``."""
    hint: str = ""
    choices: tuple[str, ...] = ()
    is_needed: bool = True


class Change(msgspec.Struct, frozen=True):
    """One thing that would become another; or, with a reason in ``then``, that cannot."""

    what: str
    now: str
    then: str
    link: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one change."""

    what: str
    done: bool
    said: str


@dataclass(frozen=True, slots=True)
class At:
    """The cluster at the moment of planning."""

    client: Client
    picture: Picture
    sizes: Sizes
    log: Callable[[str], None]
    go_on: Callable[[Coroutine[None, None, None]], None]
    """Something goes on after the answer, as long as the console runs."""


Work = Callable[[], Awaitable[list[Outcome]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What would change from which state, what cannot, and the work; without work there is nothing to do."""

    sentence: str
    work: Work | None = None
    changes: list[Change] = field(default_factory=list)
    cannot: list[Change] = field(default_factory=list)
    state: str = ""
    """What else must be the same when it is done."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that can be done."""

    name: str
    path: str
    title: str
    verb: str
    fields: tuple[Field, ...]
    plan: Callable[[At, Filled], Awaitable[Plan]]
    command: Callable[[Filled], str]
    does_harm: bool = False

    def is_filled(self, filled: Filled) -> bool:
        """Whether there is enough to plan with."""
        return all(filled.get(one.name, "").strip() for one in self.fields if one.is_needed)


class Previews:
    """Which plans were shown: each may be done once, as long as it is still the plan."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._done: deque[str] = deque(maxlen=PREVIEWS_KEPT)

    def shown(self, act: Act, filled: Filled, plan: Plan) -> str:
        """The mark of a plan that is shown now."""
        return self._mark(secrets.token_hex(8), act, filled, plan)

    def refusal(self, mark: str, act: Act, filled: Filled, plan: Plan) -> str | None:
        """Why it may not be done."""
        if mark in self._done:
            return "This was done already; look at the preview again before you do it once more."
        if not hmac.compare_digest(
            mark.encode(), self._mark(mark.partition(".")[0], act, filled, plan).encode()
        ):
            return "The cluster is not as it was in the preview, so nothing was done. This is the plan now."
        return None

    def done(self, mark: str) -> None:
        """It begins now, and never again."""
        self._done.append(mark)

    def _mark(self, nonce: str, act: Act, filled: Filled, plan: Plan) -> str:
        state = msgspec.json.encode(
            [nonce, act.path, sorted(filled.items()), plan.changes, plan.cannot, plan.state]
        )
        return f"{nonce}.{hmac.new(self._key, state, hashlib.sha256).hexdigest()}"


def outcome(what: str, code: int, said: str | None = None, done: str = "done") -> Outcome:
    """From an error code of Kafka's."""
    if not code:
        return Outcome(what, True, done)
    name = ErrorCode(code).name
    return Outcome(what, False, f"{name}: {said}" if said else name)


def number_in(filled: Filled, name: str, label: str, least: int, most: int) -> int:
    """A number of a form."""
    text = filled.get(name, "").strip()
    sign, digits = text[:1] == "-", text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(most)):
        number = -int(digits) if sign else int(digits)
        if least <= number <= most:
            return number
    raise CannotAct(f"{label} is a number from {least} to {most}, not {text!r}.")
