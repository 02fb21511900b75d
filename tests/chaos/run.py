"""One run from the first process to the verdict: start, load and faults, healing, draining, checking."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos import replicas
from chaos.availability import Availability, measure
from chaos.checker import Checker, Verdict
from chaos.cluster import TOPIC, ChaosCluster
from chaos.copying import COPIES, Copiers, check_copies
from chaos.copying import GROUP as COPIERS
from chaos.crew import Worker
from chaos.history import HistoryFile, read_history
from chaos.nemeses import HARMLESS, Fault, Nemesis
from chaos.options import Options
from chaos.probe import Probe
from chaos.schedule import Deck, play
from chaos.soak import Sampler, Trend, trends
from chaos.workers.common import QUICK, Task, counted
from ottla.model.internal_topics import OFFSETS_TOPIC
from support.clusters.watermarks import watermarks
from support.running.waiting import wait_until

WHOLE_SECONDS_MAX = 15.0
CONVERGE_SECONDS_MAX = 60.0
DRAIN_SECONDS_MAX = 120.0
MEMBERS = 3
GROUP = "readers"
GROUP_SECONDS_MAX = 120.0
STABLE_SECONDS_MAX = 60.0
OFFSETS_PARTITIONS = 4
"""As the cluster's settings say."""
TOPICS_SECONDS_MAX = 30.0
LAST_ROUND_S = 8.0
"""No round begins so shortly before the end."""
RETENTION_ROUNDS_S = 12.0
SOAK_RETENTION = {"retention.bytes": str(6 * 1024 * 1024)}
FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}
Tell = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """Everything a summary needs."""

    injected: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)
    availability: Availability = field(default_factory=Availability)
    trends: list[Trend] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What went wrong beside the clients' histories: ended brokers, exceptions, replicas that differ."""

    @property
    def violations(self) -> list[str]:
        not_flat = [f"broker {trend.broker} grows: {trend}" for trend in self.trends if not trend.is_flat]
        return [*self.verdict.violations, *self.availability.late, *self.problems, *not_flat]


class Run:
    """A run and all that belongs to it."""

    def __init__(self, options: Options, directory: Path, tell: Tell) -> None:
        self.options = options
        self.outcome = Outcome()
        self._tell = tell
        self._directory = directory
        self._histories = directory / "history"
        self._histories.mkdir(parents=True)
        self._random = Random(options.seed)
        self._notes = HistoryFile(self._histories, "nemesis")
        self._probed = HistoryFile(self._histories, "probe")
        self._sampled = HistoryFile(self._histories, "samples")
        self._cluster = ChaosCluster(
            directory / "cluster", options.broker_kinds, options.session_ms, options.seed
        )
        self._probe = Probe(
            self._cluster.brokers, TOPIC, options.partitions, self._probed, options.patience_s
        )
        self._sampler = Sampler(self._cluster.brokers, self._sampled)
        self._workers: dict[str, Worker] = {}
        self._copiers: Copiers | None = None
        self._began = time.monotonic()

    def run(self) -> Outcome:
        try:
            self._start()
            self._hurt()
            self._settle()
        finally:
            self._stop()
        self._check()
        return self.outcome

    # ---- start

    def _start(self) -> None:
        self._cluster.start()
        config = SOAK_RETENTION if self.options.is_soak else FOR_EVER
        self._cluster.create_topic(self.options.partitions, config)
        self._probe.start()
        wait_until(self._probe.are_all_led, "every partition is led", 90)
        each = self.options.rate / self.options.producers
        for number in range(self.options.producers):
            self._hire(
                "producer",
                f"producer-{number}",
                number=number,
                client=self.options.producers_of,
                rate=each,
                bytes=self.options.record_bytes,
            )
        self._hire("reader", "reader")
        strategy = self._random.choice(("range", "cooperative-sticky"))
        for number in range(MEMBERS):
            self._hire("member", f"member-{number}", group=GROUP, strategy=strategy)
        if self.options.copiers:
            self._start_copiers()
        numbers = [broker.number for broker in self._cluster.brokers]
        self._hire("churn", "churn", seed=self.options.seed, brokers=numbers)
        wait_until(lambda: counted(self._histories) > 0, "the first record is acknowledged", 90)
        if self.options.is_soak:
            self._sampler.start()
        self._tell(f"{len(numbers)} brokers under load after {time.monotonic() - self._began:.1f} s")

    def _start_copiers(self) -> None:
        self._cluster.create_topic(self.options.partitions, FOR_EVER, COPIES)
        self._copiers = Copiers(
            self._cluster.bootstrap, TOPIC, self.options.partitions, self._histories, self._random
        )
        self._copiers.start(self.options.copiers)

    def _hire(self, kind: str, name: str, **options: object) -> None:
        task = Task(
            kind, name, self._cluster.bootstrap, TOPIC, self.options.partitions, self._histories, options
        )
        self._workers[name] = Worker(task)

    # ---- load and faults

    def _hurt(self) -> None:
        began = time.monotonic()
        members = [worker for worker in self._workers.values() if worker.task.kind == "member"]
        numbers = [broker.number for broker in self._cluster.brokers]
        victims = numbers[-1:] if self.options.is_soak else numbers
        nemesis = Nemesis(self._cluster, self._probe, self._random, members, victims, self._copiers)
        possible = set(nemesis.kinds())
        left_out = sorted((HARMLESS | {"disk full"}) - possible)
        if left_out:
            self._tell(f"left out, for lack of namespaces: {', '.join(left_out)}")
        deck = Deck(possible & set(self.options.kinds) if self.options.kinds else possible, self._random)
        ends = began + self.options.seconds
        while time.monotonic() < ends - min(LAST_ROUND_S, self.options.seconds / 2):
            draw = deck.draw()
            nemesis.begin_round()
            faults = [fault for kind in draw.kinds if (fault := nemesis.make(kind)) is not None]
            for number, fault in enumerate(faults):
                fault.after_s = self._random.uniform(0, 2) if number else 0.0
            if faults:
                self._round(faults, draw.waits_until_whole)
            time.sleep(draw.pause_s)
        time.sleep(max(0.0, ends - time.monotonic()))
        self.outcome.seconds = time.monotonic() - began

    def _round(self, faults: list[Fault], waits_until_whole: bool) -> None:
        text = " + ".join(
            f"{fault.text}, {fault.hold_s:.1f} s" if fault.hold_s else fault.text for fault in faults
        )
        self._notes.write("injected", text=text, kinds=[fault.kind for fault in faults])
        self.outcome.injected.update(fault.kind for fault in faults)
        self.outcome.rounds += 1
        try:
            play(faults)
        except AssertionError as error:  # something that was awaited did not come
            self.outcome.problems.append(f"{error}, after: {text}")
        healed = time.monotonic()
        self._notes.write("healed", text=text)
        self._notes.flush()
        self._await(lambda: self._are_running() and self._probe.are_all_led(), self.options.bound_s + 20)
        led = time.monotonic() - healed
        if waits_until_whole:
            self._await(
                lambda: self._are_running() and self._probe.why_not_whole() is None, WHOLE_SECONDS_MAX
            )
        at, acked = time.monotonic() - self._began, counted(self._histories)
        self._tell(
            f"{at:5.0f} s  round {self.outcome.rounds:3}  led {led:4.1f} s after  {acked:9,} acked  {text}"
        )

    def _are_running(self) -> bool:
        """Whether all brokers run; those that ended are started again, and reported if not excused."""
        if self._copiers is not None:
            self._copiers.tend()
        ended = [broker for broker in self._cluster.brokers if not broker.is_running]
        for broker in ended:
            # An Apache broker that comes back before its last session has ended refuses to start.
            if broker.kind != "apache" and not broker.may_end:
                self.outcome.problems.append(f"{broker.name} ended by itself: {broker.last_words()}")
            broker.launch()
        return not ended

    @staticmethod
    def _await(condition: Callable[[], bool], seconds: float) -> bool:
        give_up = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.1)
        return True

    # ---- healing and draining

    def _settle(self) -> None:
        began = time.monotonic()
        self._notes.write("load ended")
        for name in ("churn", "producer"):
            for worker in self._of_kind(name):
                worker.stop()
        self._await(lambda: self._are_running() and self._probe.are_all_led(), self._converge_s)
        self._end(self._of_kind("churn") + self._of_kind("producer"), "its last records")
        self._await_whole()
        ends = self._offsets_that_stay() if self.options.is_soak else self._offsets()
        starts = {partition: low for partition, (low, _) in ends.items()}
        self._hire("reader", "final", starts=starts)
        targets = {partition: high for partition, (_, high) in ends.items()}
        readers = self._of_kind("reader")
        for worker in readers:
            worker.drain(targets)
        self._end(readers, "all records")
        self._await_group(GROUP, targets)
        if self._copiers is not None:
            self._settle_copiers(self._copiers, targets)
        members = self._of_kind("member")
        for worker in members:
            worker.stop()
        self._end(members, "its group to let it go")
        self._note_topics()
        self._await_whole()  # what is compared afterwards is what the disks hold now
        self._tell(f"healed and drained in {time.monotonic() - began:.1f} s")

    def _await_group(self, group: str, targets: dict[int, int]) -> None:
        def is_there() -> bool:
            return self._are_running() and self._committed(group) == targets

        if not self._await(is_there, GROUP_SECONDS_MAX):
            text = f"the group {group} stays at {self._committed(group)}, and not at {targets}"
            self.outcome.problems.append(text)

    def _settle_copiers(self, copiers: Copiers, targets: dict[int, int]) -> None:
        """They copy the rest and end; then no partition may be unstable, and the readers read to its end."""
        self._await_group(COPIERS, targets)
        self._end(copiers.stop(), "the end of its transaction")
        for topic, partitions in ((COPIES, self.options.partitions), (OFFSETS_TOPIC, OFFSETS_PARTITIONS)):
            if not self._await(partial(copiers.are_stable, topic, partitions), STABLE_SECONDS_MAX):
                self.outcome.problems.append(f"{topic} has transactions that do not end")
        self._end(
            copiers.read_to(copiers.ends(COPIES, self.options.partitions, is_stable=True)), "all copies"
        )

    @property
    def _converge_s(self) -> float:
        return CONVERGE_SECONDS_MAX + self.options.slack_s

    def _await_whole(self) -> None:
        """By answers of from now on: what was asked for last, a move of replicas say, must show in them."""
        since = time.monotonic()
        if not self._await(
            lambda: self._are_running() and self._probe.why_not_whole(since) is None, self._converge_s
        ):
            why = self._probe.why_not_whole(since)
            self.outcome.problems.append(f"not whole after all faults healed: {why}")

    def _of_kind(self, kind: str) -> list[Worker]:
        return [worker for worker in self._workers.values() if worker.task.kind == kind]

    def _end(self, workers: list[Worker], awaited: str) -> None:
        give_up = time.monotonic() + DRAIN_SECONDS_MAX
        for worker in workers:
            code = worker.wait(max(0.1, give_up - time.monotonic()))
            if code is None:
                worker.say_where_it_is()
                self.outcome.problems.append(f"{worker.task.name} still waits for {awaited}")
            elif code != 0:
                self.outcome.problems.append(f"{worker.task.name} ended with exit code {code}")

    def _committed(self, group: str) -> dict[int, int]:
        """Where a group stands."""
        consumer = Consumer({"bootstrap.servers": self._cluster.bootstrap, "group.id": group, **QUICK})
        try:
            wanted = [TopicPartition(TOPIC, partition) for partition in range(self.options.partitions)]
            return {each.partition: each.offset for each in consumer.committed(wanted, 10)}
        except KafkaException:
            return {}
        finally:
            consumer.close()

    def _offsets(self) -> dict[int, tuple[int, int]]:
        consumer = Consumer(
            {"bootstrap.servers": self._cluster.bootstrap, "group.id": "chaos-offsets", **QUICK}
        )
        try:
            return {
                partition: watermarks(consumer, TOPIC, partition)
                for partition in range(self.options.partitions)
            }
        finally:
            consumer.close()

    def _offsets_that_stay(self) -> dict[int, tuple[int, int]]:
        """Once retention has had its rounds: until then it takes what a reader is about to read."""
        offsets, since = self._offsets(), time.monotonic()
        while time.monotonic() - since < RETENTION_ROUNDS_S:
            time.sleep(0.5)
            if (now := self._offsets()) != offsets:
                offsets, since = now, time.monotonic()
        return offsets

    def _note_topics(self) -> None:
        """Which topics each broker knows, when they agree or have had the time to."""
        told = self._cluster.topics()
        give_up = time.monotonic() + TOPICS_SECONDS_MAX
        while (None in told or len(set(told)) > 1) and time.monotonic() < give_up:
            time.sleep(0.1)
            told = self._cluster.topics()
        for number, topics in enumerate(told, 1):
            if topics is None:
                self.outcome.problems.append(f"broker {number} does not tell its topics")
            else:
                self._notes.write("topics", broker=f"broker {number}", topics=sorted(topics))

    def _stop(self) -> None:
        for worker in self._workers.values():
            worker.kill()
        if self._copiers is not None:
            self._copiers.kill()
        self._probe.stop()
        if self.options.is_soak:
            self._sampler.stop()
        self._cluster.shut_down_brokers()
        self._cluster.stop()
        for file in (self._notes, self._probed, self._sampled):
            file.close()

    # ---- the verdict

    def _check(self) -> None:
        history = list(read_history(self._histories))
        self.outcome.verdict = Checker(history).check()
        if self._copiers is not None:
            copies = read_history(self._copiers.histories)
            check_copies(history, copies, "final", self.outcome.verdict)
            if not self.outcome.verdict.copied:
                self.outcome.problems.append("nothing was copied")
        self.outcome.availability = measure(history, self.options.partitions, self.options.bound_s)
        self.outcome.trends = trends(history, minutes_min=self.options.seconds / 60 * 0.3)
        if not self.outcome.verdict.acknowledged:
            self.outcome.problems.append("nothing was acknowledged")
        for partition in range(self.options.partitions):
            holders = {
                number: self._cluster.broker(number).disk.directory
                for number in self._probe.replicas(partition)
            }
            self.outcome.problems += replicas.compare(TOPIC, partition, holders)
        for broker in self._cluster.brokers:
            if count := broker.tracebacks():
                self.outcome.problems.append(f"{broker.name} logged {count} exceptions: {broker.log}")
