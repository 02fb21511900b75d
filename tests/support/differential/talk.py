"""One case's conversation with one broker: what it asks, and what it got, in neutral words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.model.errors import MalformedRequest
from ottla.wire.fields import Request
from support.differential.connection import ANSWER_SECONDS_MAX, Connection, Outcome
from support.differential.neutral import Neutral
from support.differential.target import KINDS, Target

SILENCE_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked, in a few words, and what came of it: an outcome's words or fields."""

    asked: str
    said: Any


class Talk:
    """Given to a case. ``partition`` is the case's own in every topic that has as many."""

    def __init__(self, target: Target, number: int) -> None:
        self.target = target
        self.answers: list[Answer] = []
        self.partition = number
        self._connection = Connection(target.port)
        self._neutral = Neutral(target)

    def partition_of(self, kind: str) -> int:
        """A partition of a kind of topic that no other case of that kind uses."""
        count, _ = KINDS[kind]
        return self.partition % count

    def topic(self, kind: str = "plain") -> str:
        return self.target.topic(kind)

    def topic_id(self, kind: str = "plain") -> bytes:
        return self.target.topic_ids[self.topic(kind)]

    def ask(self, message: Request, version: int, *, note: str = "", client_id: str | None = "judge") -> Any:
        """Send a request and note the answer; the response, or None if none came."""
        name = f"{type(message).__name__} v{version} {note}".rstrip()
        return self._exchange(name, message, version, self._connection.framed(message, version, client_id))

    def ask_frame(self, name: str, frame: bytes, message: Request | None = None, version: int = 0) -> Any:
        """Send bytes; if they are answered, the answer is read as one to ``message``."""
        return self._exchange(name, message, version, frame, SILENCE_SECONDS)

    def ask_and_expect_silence(self, message: Request, version: int, *, note: str = "") -> None:
        """Send a request that may be left unanswered."""
        name = f"{type(message).__name__} v{version} {note}".rstrip()
        frame = self._connection.framed(message, version)
        self._exchange(name, message, version, frame, SILENCE_SECONDS)

    def tell(self, message: Request, version: int) -> None:
        """Send a request that is never answered, such as Produce with acks 0, and a question behind it."""
        frame = self._connection.framed(message, version)
        self._connection.send(frame)

    def close(self) -> None:
        self._connection.close()

    def _exchange(
        self,
        name: str,
        message: Request | None,
        version: int,
        frame: bytes,
        seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> Any:
        got = self._connection.exchange(frame, seconds_max)
        if isinstance(got, Outcome):
            self.answers.append(Answer(name, got.value))
            return None
        if message is None:
            self.answers.append(Answer(name, f"answered {len(got)} bytes"))
            return None
        try:
            response = self._connection.decoded(message, version, got)
        except MalformedRequest as error:
            self.answers.append(Answer(name, f"answered what cannot be read: {error}"))
            return None
        self.answers.append(Answer(name, self._neutral.said(response, version)))
        return response


@dataclass(frozen=True, slots=True)
class Case:
    """A named conversation; ``number`` is its place in the list and its partition."""

    name: str
    run: Callable[[Talk], None]


class Cases(list[Case]):
    """A list that functions enter by decoration; a function may enter once for each of several values."""

    def add(self, function: Callable[[Talk], None]) -> Callable[[Talk], None]:
        self.append(Case(_words(function.__name__), function))
        return function

    def add_for(self, *values: Any) -> Callable[[Callable[[Talk, Any], None]], Callable[[Talk, Any], None]]:
        """One case for each value, which is given to the function and stands in the case's name."""

        def enter(function: Callable[[Talk, Any], None]) -> Callable[[Talk, Any], None]:
            for value in values:
                self.append(Case(f"{_words(function.__name__)} {_short(value)}", _given(function, value)))
            return function

        return enter


def _given(function: Callable[[Talk, Any], None], value: Any) -> Callable[[Talk], None]:
    def run(talk: Talk) -> None:
        function(talk, value)

    return run


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(value: Any) -> str:
    return str(value[0]) if isinstance(value, tuple) else str(getattr(value, "name", value))
