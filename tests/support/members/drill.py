"""A group of member programs under harm, and the truth about what it read.

What must hold, whatever happens to members and brokers: every record is delivered at least once; whoever is
assigned a partition begins at or above every commit that was acknowledged before, goes on without a gap, and
goes back (after a commit that failed) no further than that.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from support.members.programs import Kind
from support.processes.java_process import dies_with_its_parent
from support.running.waiting import wait_until

METADATA_MAX_AGE_MS = 1_000


class Truth:
    """Everything that members said, in the order in which it was heard."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.delivered: dict[tuple[int, int], int] = {}
        self.acknowledged: dict[int, int] = {}
        self.breaches: list[str] = []

    def begins(self, who: str, partition: int, offset: int, floor: int) -> None:
        if offset < floor:
            self.breaches.append(f"{who} was given {partition}:{offset} again, {floor} was committed")


class Member:
    """One program, and where it stands in its partitions."""

    def __init__(self, name: str, truth: Truth, command: list[str], stderr: Path) -> None:
        self.name = name
        self.truth = truth
        self.owned: set[int] = set()
        self.said: list[str] = []
        self._next: dict[int, int] = {}
        self._floor: dict[int, int] = {}
        with stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=dies_with_its_parent,
                start_new_session=True,
            )
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None, "started with a pipe"
        for line in self.process.stdout:
            with self.truth.lock:
                self.said.append(line.rstrip())
                self._hear(line.split())

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["assigned", text]:
                for partition in _numbers(text):
                    self.owned.add(partition)
                    self._next.pop(partition, None)
                    self._floor[partition] = self.truth.acknowledged.get(partition, 0)
            case ["revoked", text]:
                self.owned -= set(_numbers(text))
            case ["record", partition, offset, value]:
                self._hear_record(int(partition), int(offset), int(value))
            case ["committed", partition, offset]:
                known = self.truth.acknowledged.get(int(partition), 0)
                self.truth.acknowledged[int(partition)] = max(known, int(offset))
            case _:
                pass

    def _hear_record(self, partition: int, offset: int, value: int) -> None:
        expected = self._next.get(partition)
        if expected is None:
            self.truth.begins(self.name, partition, offset, self._floor.get(partition, 0))
        elif offset < expected:
            self.truth.begins(self.name, partition, offset, self.truth.acknowledged.get(partition, 0))
        elif offset > expected:
            self.truth.breaches.append(f"{self.name} went from {partition}:{expected} to {offset}")
        self._next[partition] = offset + 1
        self.truth.delivered[partition, offset] = value

    def has_ended(self) -> bool:
        """Whether the program is over; all that it said is heard then."""
        if self.process.poll() is None:
            return False
        self._ear.join(10)
        return True

    # -- harm ----------------------------------------------------------------------------------

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.owned.clear()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def leave(self, seconds_max: float = 30) -> None:
        """Ask it to go, and wait for it."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds_max)
        self.kill()

    def close(self) -> None:
        self.kill()
        self._ear.join(10)
        assert self.process.stdout is not None, "started with a pipe"
        self.process.stdout.close()


class Drill:
    """A topic that is written all the time, and a group that reads it."""

    def __init__(self, bootstrap: str, topic: str, group: str, kind: Kind, strategy: str, home: Path) -> None:
        self.truth = Truth()
        self.group = group
        self.members: list[Member] = []
        self.produced = 0
        self._everyone: list[Member] = []
        self._kind = kind
        self._home = home
        self._settings = {
            "bootstrap.servers": bootstrap,
            "topic": topic,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": "3000",
            "heartbeat.interval.ms": "300",
            "max.poll.interval.ms": "8000",
            "metadata.max.age.ms": str(METADATA_MAX_AGE_MS),
        }
        self._topic = topic
        self._failures: list[Any] = []
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
        )
        self._is_over = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def _write(self) -> None:
        while not self._is_over.is_set():
            for _ in range(4):
                value = str(self.produced).encode()
                self._producer.produce(self._topic, value, on_delivery=self._delivered)
                self.produced += 1
            self._producer.poll(0)
            self._is_over.wait(0.02)

    def _delivered(self, error: Any, _: object) -> None:
        if error is not None:
            self._failures.append(error)

    # -- the group -----------------------------------------------------------------------------

    def join(self, count: int = 1, instance: str | None = None, **settings: str) -> list[Member]:
        """More members; ``instance`` makes them static."""
        joined = []
        for _ in range(count):
            name = f"{self._kind.name}-{len(self._everyone)}"
            given = {**self._settings, **settings}
            if instance is not None:
                given["group.instance.id"] = instance
            words = [f"{key}={value}" for key, value in given.items()]
            member = Member(name, self.truth, [*self._kind.command(), *words], self._home / f"{name}.err")
            self._everyone.append(member)
            joined.append(member)
        self.members += joined
        return joined

    def lose(self, member: Member) -> Member:
        """It is no longer counted on."""
        self.members.remove(member)
        return member

    def settled(self, partitions: int, seconds_max: float = 120) -> None:
        """Until every partition has one owner among the members and every member that can has a share."""

        def is_settled() -> bool:
            self.check()
            with self.truth.lock:
                shares = [set(member.owned) for member in self.members]
            wanted = min(len(shares), partitions)
            return (
                sum(map(len, shares)) == partitions == len(set().union(*shares))
                and sum(map(bool, shares)) == wanted
            )

        wait_until(is_settled, lambda: f"the group is stable:\n{self.story()}", seconds_max)

    def hears(self) -> None:
        """Until every member has asked who is there. Clients that never go back to their bootstrap servers
        (Java before 4.0, kafka-python, aiokafka) are lost if the one broker they know of dies before that;
        they do not say when they have asked."""
        time.sleep(3 * METADATA_MAX_AGE_MS / 1_000)

    def progresses(self, seconds_max: float = 120) -> None:
        """Until the group has committed what is written now."""
        with self.truth.lock:
            before = len(self.truth.delivered)
        wait_until(
            lambda: self._delivered_since(before), lambda: f"the group goes on:\n{self.story()}", seconds_max
        )

    def _delivered_since(self, before: int) -> bool:
        self.check()
        with self.truth.lock:
            return len(self.truth.delivered) > before + 20

    def finish(self, seconds_max: float = 120) -> None:
        """No more is written; all of it is read."""
        self._is_over.set()
        self._writer.join()
        assert self._producer.flush(60) == 0
        assert not self._failures
        wanted = self.produced
        deadline = time.monotonic() + seconds_max
        while (missing := self._missing(wanted)) and time.monotonic() < deadline:
            self.check()
            time.sleep(0.05)
        assert not missing, f"never delivered: {sorted(missing)[:20]} of {wanted}\n{self.story()}"
        self.check()

    def _missing(self, wanted: int) -> set[int]:
        with self.truth.lock:
            return set(range(wanted)) - set(self.truth.delivered.values())

    def check(self) -> None:
        """Nothing was undone so far, and nobody who is counted on has gone."""
        gone = next((member for member in self.members if member.has_ended()), None)
        assert gone is None, f"{gone.name} ended by itself\n{self.story()}"
        with self.truth.lock:
            assert not self.truth.breaches, f"{self.truth.breaches}\n{self.story()}"

    def story(self) -> str:
        """What each member said last."""
        lines = []
        for member in self._everyone:
            said = [line for line in member.said if not line.startswith(("record", "committed"))]
            lines.append(f"{member.name} {sorted(member.owned)} exit {member.process.poll()}: {said[-6:]}")
        return "\n".join(lines)

    def close(self) -> None:
        self._is_over.set()
        self._writer.join()
        for member in self._everyone:
            member.close()


def _numbers(text: str) -> list[int]:
    return [] if text == "-" else [int(number) for number in text.split(",")]
