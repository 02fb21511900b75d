"""Whatever members do, a partition has one owner in a generation and acknowledged offsets stay."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.group import GroupConfig
from ottla.coordinator.group.states import GroupState
from scenarios.group.world import GROUP, GroupWorld

NAMES = ("alice", "bob", "carol", "dave")
VERBS = ("join", "rejoin", "sync", "heartbeat", "leave", "crash")
PARTITIONS = tuple(f"orders-{number}" for number in range(5))

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["join", "rejoin", "sync", "heartbeat", "leave", "crash"]), st.sampled_from(NAMES)
        ),
        st.tuples(st.just("commit"), st.sampled_from(NAMES)),
        st.tuples(st.just("advance"), st.sampled_from(["1", "2900", "6000", "11000", "61000"])),
        st.tuples(st.sampled_from(["failover", "hold", "release", "lose"]), st.just("")),
    ),
    max_size=60,
)


class Watcher:
    """Plays steps and keeps the truth: who owned what in which generation, what was acknowledged."""

    def __init__(self) -> None:
        self.world = GroupWorld(GroupConfig(group_initial_rebalance_delay_ms=3000))
        self.owners: dict[tuple[int, str], str] = {}
        self.generation = 0
        self.next_offset = 0
        self.acknowledged = -1
        self.asked: dict[str, list[int]] = {}

    def step(self, verb: str, name: str) -> None:
        world = self.world
        known = name in world.consumers and world.consumers[name].member_id
        match verb:
            case "join":
                self.say(f"join {name}")
            case "rejoin" if known:
                self.say(f"join {name} version=3")
            case "crash":
                if name in world.consumers:
                    world.consumers[name].member_id = ""
            case "sync" if known:
                self.say(f"sync {name} {self.shares(name)}")
            case "heartbeat" | "leave" if known:
                self.say(f"{verb} {name}")
            case "commit" if known:
                self.next_offset += 1
                self.asked.setdefault(name, []).append(self.next_offset)
                self.say(f"commit {name} orders-0 offset={self.next_offset}")
            case "advance":
                self.say(f"advance {name}")
            case "failover" | "hold":
                self.say(verb)
            case "release":
                self.say("release")
            case "lose":
                self.say("release NOT_LEADER_OR_FOLLOWER")
            case _:
                pass

    def shares(self, name: str) -> str:
        """A leader deals the partitions among those it was told of."""
        roster = self.world.consumers[name].roster
        by_id = {who.member_id: who.name for who in self.world.consumers.values() if who.member_id}
        dealt: dict[str, list[str]] = {}
        for number, partition in enumerate(PARTITIONS):
            if roster and (owner := by_id.get(roster[number % len(roster)])) is not None:
                dealt.setdefault(owner, []).append(partition)
        return "assign=" + ";".join(f"{owner}:{'+'.join(parts)}" for owner, parts in dealt.items())

    def say(self, command: str) -> None:
        for line in self.world.run(command):
            self.hear(line)

    def hear(self, line: str) -> None:
        words = line.split()
        name = words[0]
        if " sync assigned " in line and words[3] != "nothing":
            who = self.world.consumers[name]
            for partition in words[3].split("+"):
                owner = self.owners.setdefault((who.generation, partition), who.member_id)
                assert owner == who.member_id or who.instance_id, f"two owners of {partition}: {line}"
        elif " joined " in line:
            generation = self.world.consumers[name].generation
            assert generation >= self.generation, f"generation went back: {line}"
            self.generation = generation
        elif " commit " in line:
            offset = self.asked[name].pop(0)
            if words[2] == "NONE":
                assert offset > self.acknowledged, "acknowledgements came out of order"
                self.acknowledged = offset

    def check(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if self.acknowledged >= 0:
            said = self.world.run("fetch orders-0")
            assert said == [f"orders-0 committed={self.acknowledged}"]
        if group is not None and group.state is not GroupState.EMPTY:
            assert group.leader in group.members or not group.members


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_one_owner_a_generation_and_no_acknowledged_offset_lost(steps: list[tuple[str, str]]) -> None:
    watcher = Watcher()
    for verb, name in steps:
        watcher.step(verb, name)
        watcher.check()

    watcher.say("release")
    watcher.say("advance 400000")
    group = watcher.world.shard.groups.get(GROUP)

    assert group is None or group.state is GroupState.EMPTY, "silent members are gone in the end"
    watcher.check()
    assert not watcher.world.asked, "every request was answered"
