"""Who leads, asked of every broker several times a second: availability that no client's patience blurs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from chaos.history import HistoryFile
from chaos.nodes import Broker
from ottla.launch import kafka_probe
from ottla.model.errors import MalformedRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

VERSION = 9
EVERY_S = 0.2
PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Led:
    """One partition as one broker tells it."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one broker said at a moment."""

    at: float
    controller: int
    brokers: frozenset[int]
    partitions: dict[int, Led]
    topics: frozenset[str] = field(default_factory=frozenset)


def ask(connection: socket.socket, topic: str | None) -> MetadataResponse:
    """Metadata of one topic, or (None) of all."""
    topics = None if topic is None else [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    response: MetadataResponse = kafka_probe.ask(connection, request, VERSION, "chaos-probe")
    return response


def ask_once(broker: Broker, topic: str | None) -> MetadataResponse | None:
    """The same on a connection of its own; None where there is no answer."""
    try:
        with socket.create_connection((broker.place.address, broker.port), PATIENCE_S) as connection:
            connection.settimeout(PATIENCE_S * 3)
            return ask(connection, topic)
    except (OSError, MalformedRequest):
        return None


class Probe:
    """One thread per broker; the newest answer of each, and a history of who was led when."""

    def __init__(
        self,
        brokers: Iterable[Broker],
        topic: str,
        partitions: int,
        history: HistoryFile,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._brokers = list(brokers)
        self._topic = topic
        self._count = partitions
        self._history = history
        self._answers: dict[int, Answer] = {}
        self._led = [False] * partitions
        self._leaders: dict[tuple[int, int], int] = {}
        self._epochs: dict[tuple[int, int, int], int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(broker,), name=f"probe-{broker.number}", daemon=True)
            for broker in self._brokers
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def are_all_led(self) -> bool:
        with self._lock:
            self._judge()
            return all(self._led)

    def fresh(self, since: float = 0.0) -> dict[int, Answer]:
        """The answers that are young enough to count, and not older than that moment."""
        youngest = max(time.monotonic() - self._patience_s, since)
        return {number: answer for number, answer in self._answers.items() if answer.at >= youngest}

    def controller(self) -> int | None:
        """The controller by the word of the broker that answered last."""
        answers = sorted(self.fresh().values(), key=lambda answer: answer.at)
        return answers[-1].controller if answers and answers[-1].controller >= 0 else None

    def leader(self, partition: int) -> int | None:
        newest = [a.partitions[partition] for a in self.fresh().values() if partition in a.partitions]
        led = max(newest, key=lambda one: one.epoch, default=None)
        return led.leader if led is not None and led.leader >= 0 else None

    def replicas(self, partition: int) -> tuple[int, ...]:
        """Those that hold the partition, by the word of its newest epoch."""
        told = [a.partitions[partition] for a in self._answers.values() if partition in a.partitions]
        return max(told, key=lambda one: one.epoch).replicas if told else ()

    def why_not_whole(self, since: float = 0.0) -> str | None:
        """None when all brokers agree, since that moment, and all replicas are in sync; else why not."""
        answers = self.fresh(since)
        missing = sorted({broker.number for broker in self._brokers} - answers.keys())
        if missing:
            return f"brokers {missing} do not answer"
        pictures = list(answers.values())
        if any(picture.brokers != frozenset(answers) for picture in pictures):
            return f"not all know all brokers: {sorted((n, sorted(a.brokers)) for n, a in answers.items())}"
        for partition in range(self._count):
            told = [picture.partitions.get(partition) for picture in pictures]
            first = told[0]
            if first is None or any(one is None for one in told):
                return f"partition {partition} is not known everywhere"
            if any(
                one is not None and (one.leader, one.epoch) != (first.leader, first.epoch) for one in told
            ):
                return f"brokers differ on who leads partition {partition}: {told}"
            if first.leader not in answers or set(first.isr) != set(first.replicas) or len(first.isr) != 3:
                return f"partition {partition} is not whole: {first}"
        return None

    # ---- the threads

    def _watch(self, broker: Broker) -> None:
        connection: socket.socket | None = None
        while not self._stop.wait(EVERY_S):
            try:
                if connection is None:
                    place = (broker.place.address, broker.port)
                    connection = socket.create_connection(place, self._patience_s)
                    connection.settimeout(self._patience_s * 2)
                self._take(broker.number, ask(connection, self._topic))
            except (OSError, MalformedRequest):
                if connection is not None:
                    connection.close()
                connection = None
                with self._lock:
                    self._judge()
        if connection is not None:
            connection.close()

    def _take(self, number: int, response: MetadataResponse) -> None:
        partitions = {
            row.partition_index: Led(
                row.leader_id, row.leader_epoch, tuple(row.replica_nodes), tuple(row.isr_nodes)
            )
            for topic in response.topics
            for row in topic.partitions
        }
        brokers = frozenset(broker.node_id for broker in response.brokers)
        with self._lock:
            self._answers[number] = Answer(time.monotonic(), response.controller_id, brokers, partitions)
            for partition, led in partitions.items():
                self._check(number, partition, led)
            self._judge()

    def _check(self, number: int, partition: int, led: Led) -> None:
        """One leader an epoch, by the word of all brokers; written down where it is not so."""
        if led.leader < 0:
            return
        known = self._leaders.setdefault((partition, led.epoch), led.leader)
        if known != led.leader:
            self._history.write(
                "two leaders", partition=partition, epoch=led.epoch, leaders=[known, led.leader]
            )
            self._leaders[partition, led.epoch] = led.leader

    def _judge(self) -> None:
        answers = self.fresh()
        for partition in range(self._count):
            led = any(
                partition in answer.partitions and answer.partitions[partition].leader == number
                for number, answer in answers.items()
            )
            if led != self._led[partition]:
                self._led[partition] = led
                self._history.write("led" if led else "not led", partition=partition)
