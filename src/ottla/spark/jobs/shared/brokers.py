"""Which brokers a running job reaches, reported on change: a query says nothing until it gives up.

A thread with a client of its own asks every broker once a second. It only reports: how to go on
without a broker is up to the job's own client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Protocol, Self

from ottla.client.blocking.client import Client
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, ask, wait_for
from ottla.client.errors import ConnectionLost
from ottla.spark.options.kafka_settings import BOOTSTRAP, kafka_settings
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse

LOOK_S = 1.0
PATIENCE_MS = 3_000
"""A broker that has not answered for so long is told; a job waits longer."""
AT_ONCE_MS = 1_000

Answers = Mapping[int, ConnectionLost | None]
"""By broker: ``None`` if it answered."""


class Watch(Protocol):
    """Watches the brokers for the length of a ``with``."""

    def __enter__(self) -> Self:
        """Begin to look."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look no more."""

    def news(self) -> list[str]:
        """The lines since the last call."""


class BrokerWatch:
    """The watch over a real cluster."""

    def __init__(self, bootstrap_servers: str) -> None:
        kafka = kafka_settings({BOOTSTRAP: bootstrap_servers}, is_sink=False)
        self._config = replace(
            kafka.client, request_timeout_ms=PATIENCE_MS, socket_connection_setup_timeout_ms=PATIENCE_MS
        )
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._is_over = Event()

    def __enter__(self) -> Self:
        Thread(target=self._look, name="broker watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()

    def news(self) -> list[str]:
        lines: list[str] = []
        while True:
            try:
                lines.append(self._lines.get_nowait())
            except Empty:
                return lines

    def _look(self) -> None:
        known: set[int] = set()
        reach = Reach()
        with Client(self._config) as client:
            while not self._is_over.wait(LOOK_S):
                for line in reach.heard(client.run(ask_brokers, known)):
                    self._lines.put(line)


def ask_brokers(engine: Engine, known: set[int]) -> Operation[Answers]:
    """Who answers, of all brokers that there ever were; ``known`` remembers them.

    A broker that has died is soon missing in what the others say.
    """
    engine.refresh_soon()
    if not engine.metadata.version:
        yield from wait_for(engine.metadata_came, PATIENCE_MS)
    known.update(engine.metadata.brokers)
    tasks = {broker: engine.spawn(_asked(engine, broker)) for broker in sorted(known)}
    answers: dict[int, ConnectionLost | None] = {}
    for broker, task in tasks.items():
        answers[broker] = yield from engine.join(task)
    return answers


def _asked(engine: Engine, broker: int) -> Operation[ConnectionLost | None]:
    """``None``, or why it does not answer. A connection that is lost at once is made again once."""
    began_ms = engine.now_ms
    for is_last in (False, True):
        try:
            yield from ask(broker, ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=PATIENCE_MS)
        except ConnectionLost as error:
            if is_last or engine.now_ms - began_ms >= AT_ONCE_MS:
                return error
        else:
            return None
    return None


class Reach:
    """What was told of brokers already, so that only news are told."""

    def __init__(self) -> None:
        self._lost: set[int] = set()

    def heard(self, answers: Answers) -> list[str]:
        """What to tell after all brokers were asked."""
        why = {broker: error for broker, error in answers.items() if error is not None}
        back, new = sorted(self._lost - why.keys()), sorted(why.keys() - self._lost)
        self._lost = set(why)
        lines = []
        if back:
            lines.append(f"{_named(back)} {'is' if len(back) == 1 else 'are'} back; {self._rest()}")
        if new and len(why) == len(answers):
            lines.append(
                f"no broker can be reached ({why[new[0]]}); the job goes on trying, and gives up after a"
                " minute or two"
            )
        elif new:
            lines.append(
                f"{_named(new)} cannot be reached ({why[new[0]]}); the job goes on with the others, and"
                " waits a minute or two for partitions that no other has"
            )
        return lines

    def _rest(self) -> str:
        if not self._lost:
            return "all brokers can be reached"
        return f"{_named(sorted(self._lost))} still cannot be reached"


def _named(brokers: Sequence[int]) -> str:
    return f"broker{'' if len(brokers) == 1 else 's'} {', '.join(map(str, brokers))}"
