"""Groups beside Apache: time to a stable group, commits a second, and the load of an offsets partition.

Two brokers a side, ``__consumer_offsets`` of one partition on both of them. Members speak over bare sockets,
so that coordinators are measured and not clients. The load is the time from the election of another leader of
that partition to its first answer for a group; meanwhile it is asked for something else, again and again.
"""

import argparse
import json
import selectors
import sys
import time
from collections.abc import Callable
from typing import Any

from _moving import move
from _sides import Side, median, settle, two_sides
from bars import GROUPS
from history import record

from ottla.model.ids import TopicPartition
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.headers import decode_response, frame_request
from support.wire.client import WireClient

TOPIC, PARTITIONS = "benched", 50
OFFSETS = TopicPartition("__consumer_offsets", 0)
COMMITTERS = 16
SECONDS_MAX = 120.0
SETTINGS: dict[str, object] = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 100}


def answers_for(address: str, group: str) -> bool:
    """Whether the broker answers for a group: its partition is led here and loaded."""
    try:
        with WireClient(address) as client:
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[])])
            return bool(client.ask(asked, 8).groups[0].error_code == 0)
    except (OSError, AssertionError):
        return False


def coordinator(side: Side, group: str) -> Any:
    """The broker of this side that answers for a group; waited for."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        with WireClient(side.brokers[0].address) as client:
            client.ask(FindCoordinatorRequest(key=group), 3)
        for broker in side.brokers:
            if answers_for(broker.address, group):
                return broker
        time.sleep(0.05)
    raise TimeoutError(f"nobody of {side.name} answers for {group}")


# -- a stable group ------------------------------------------------------------------------------


class Gathering:
    """Members of one group, each on a connection of its own."""

    def __init__(self, address: str, group: str, count: int) -> None:
        self.group = group
        self.clients = [WireClient(address, SECONDS_MAX) for _ in range(count)]
        self.ids = [""] * count
        self.rounds = 0

    def first_time(self) -> None:
        """All come at once and learn their ids; then they gather."""
        self.ids = [answer.member_id for answer in self.all_ask([self.a_join(0)] * len(self.clients), 9)]
        self.gather()

    def gather(self) -> None:
        """Everyone joins with something new to say, and gets its share."""
        self.rounds += 1
        joined = self.all_ask([self.a_join(number) for number in range(len(self.clients))], 9)
        assert len({answer.generation_id for answer in joined}) == 1, "the group gathered once"
        shares = [SyncGroupRequestAssignment(member_id=each, assignment=b"share") for each in self.ids]
        synced = self.all_ask(
            [
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=answer.generation_id,
                    member_id=answer.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=shares if answer.leader == answer.member_id else [],
                )
                for answer in joined
            ],
            5,
        )
        assert {bytes(answer.assignment) for answer in synced} == {b"share"}

    def a_join(self, number: int) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=self.ids[number],
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"%d" % self.rounds)],
        )

    def all_ask(self, messages: list[Any], version: int) -> list[Any]:
        for client, message in zip(self.clients, messages, strict=True):
            client.send(message, version)
        return [
            client.answer(message, version) for client, message in zip(self.clients, messages, strict=True)
        ]

    def close(self) -> None:
        for client in self.clients:
            client.close()


def seconds_to_stable(address: str, group: str, count: int) -> tuple[float, float]:
    """From nothing to everyone's share; and the same again in a group that is there."""
    gathering = Gathering(address, group, count)
    try:
        first = timed(gathering.first_time)
        return first, timed(gathering.gather)
    finally:
        gathering.close()


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


# -- commits -------------------------------------------------------------------------------------


def a_commit(group: str, partitions: range, offset: int) -> bytes:
    rows = [
        OffsetCommitRequestPartition(partition_index=each, committed_offset=offset) for each in partitions
    ]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    return b"".join(frame_request(OffsetCommitRequest(group_id=group, topics=topics), 8, 1, "bench"))


def send_all(address: str, frames: list[bytes], connections: int = COMMITTERS) -> float:
    """Every connection has one request under way; the seconds until all are answered without an error."""
    clients = [WireClient(address, SECONDS_MAX) for _ in range(connections)]
    waiting = selectors.DefaultSelector()
    left = iter(frames)
    began = time.perf_counter()
    try:
        for client in clients:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.send_bytes(next(left))
        answered = 0
        while answered < len(frames):
            for key, _ in waiting.select(SECONDS_MAX):
                _, body = decode_response(OffsetCommitResponse, 8, key.data.read_frame())
                assert not any(row.error_code for topic in body.topics for row in topic.partitions), body
                answered += 1
                if (frame := next(left, None)) is not None:
                    key.data.send_bytes(frame)
        return time.perf_counter() - began
    finally:
        waiting.close()
        for client in clients:
            client.close()


def commits_per_second(address: str, group: str, count: int) -> float:
    """One partition a commit, from several members of the bench at a time."""
    frames = [
        a_commit(group, range(number % PARTITIONS, number % PARTITIONS + 1), number)
        for number in range(count)
    ]
    return count / send_all(address, frames)


# -- the load ------------------------------------------------------------------------------------


def fill(address: str, records: int) -> None:
    """Groups of many partitions, each committed once: every record counts."""
    send_all(
        address,
        [a_commit(f"many-{number}", range(PARTITIONS), number) for number in range(records // PARTITIONS)],
    )


def offsets_are_there(probe: WireClient) -> bool:
    """Whether the broker answers for one of the groups."""
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="many-0", topics=None)])
    group = probe.ask(asked, 8).groups[0]
    if group.error_code:
        return False
    assert len(group.topics[0].partitions) == PARTITIONS, "the offsets are there"
    return True


def loads(side: Side, rounds: int) -> tuple[float, float]:
    """The median load, to and fro, and the longest silence of all."""
    seconds, silences = [], []
    for _ in range(rounds):
        leader = coordinator(side, "many-0")
        target = next(b for b in side.brokers if b is not leader)
        taken, silence = move(side, OFFSETS, target, offsets_are_there, SECONDS_MAX)
        seconds.append(taken)
        silences.append(silence)
        settle()
    return median(seconds), max(silences)


# -- all of it -----------------------------------------------------------------------------------


def measure(side: Side, arguments: argparse.Namespace) -> dict[str, float]:
    side.create(TOPIC, PARTITIONS, 1)
    address = coordinator(side, "many-0").address
    for number in range(arguments.warm_rounds):
        seconds_to_stable(address, f"warm-{number}", arguments.members)
        commits_per_second(address, "warm", arguments.commits)
    gathered = [
        seconds_to_stable(address, f"stable-{number}", arguments.members)
        for number in range(arguments.rounds)
    ]
    commits = [
        commits_per_second(address, f"commits-{number}", arguments.commits)
        for number in range(arguments.rounds)
    ]
    fill(address, arguments.records)
    settle(2)
    load, silence = loads(side, arguments.rounds)
    return {
        "stable group, s": median([first for first, _ in gathered]),
        "gathering again, s": median([again for _, again in gathered]),
        "commits per second": median(commits),
        "load, s": load,
        "longest silence during a load, ms": silence,
        "memory of a broker, MB": side.memory_mb(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-rounds", type=int, default=2)
    arguments = parser.parse_args()
    with two_sides(brokers=2, **SETTINGS) as sides:
        numbers = {side.name: measure(side, arguments) for side in sides}
    missed = []
    print(f"{json.dumps(vars(arguments))}\n{'':34} {'ottla':>10} {'apache':>10} {'ratio':>7}")
    for name, ours in numbers["ottla"].items():
        theirs = numbers["apache"][name]
        is_missed = name in GROUPS and not GROUPS[name].is_met(ours, theirs)
        missed += [name] * is_missed
        print(f"{name:34} {ours:10.3f} {theirs:10.3f} {ours / theirs:7.2f}{'  MISSED' * is_missed}")
    record("groups", {**vars(arguments), **numbers})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
