"""Whatever members do, a partition has one owner in a generation and acknowledged offsets stay."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.group import GroupConfig
from ottla.coordinator.group.states import GroupState
from scenarios.group.world import GROUP, Consumer, GroupWorld

NAMES = ("alice", "bob", "carol", "dave")
STATIC = "dave"
PARTITIONS = tuple(f"orders-{number}" for number in range(5))
INITIAL_DELAY_MS = 3_000

OF_A_MEMBER = (
    *("join", "join", "rejoin", "sync", "sync", "heartbeat", "leave", "crash"),
    *("commit", "commit", "commit late", "commit early", "commit as a ghost", "sync late"),
)
OF_ALL = {"gather": 14, "failover": 2, "hold": 3, "release": 4, "lose": 2, "doubt": 2}
PASSING_MS = {1: 3, 2_900: 2, 6_000: 2, 11_000: 2, 61_000: 1}
CHOICES = [
    *((verb, name) for verb in OF_A_MEMBER for name in NAMES),
    *((verb, "") for verb, weight in OF_ALL.items() for _ in range(weight)),
    *(("advance", str(ms)) for ms, weight in PASSING_MS.items() for _ in range(weight)),
]
STEPS = st.lists(st.sampled_from(CHOICES), min_size=20, max_size=50)
STRANGERS = ("join UNKNOWN_MEMBER_ID", "join FENCED_INSTANCE_ID", "heartbeat UNKNOWN_MEMBER_ID")


class Watcher:
    """Plays steps and keeps the truth: who owned what in which generation, what was acknowledged."""

    def __init__(self) -> None:
        self.world = GroupWorld(GroupConfig(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS))
        self.owners: dict[tuple[int, str], str] = {}
        self.ghosts: dict[str, tuple[str, int]] = {}
        self.generation = 0
        """The last one that assigned anything: those before it may be forgotten with their coordinator."""
        self.next_offset = 0
        self.acknowledged = -1
        self.fetched = -1
        self.asked: dict[str, list[tuple[int, bool]]] = {}
        self.synced: dict[str, int] = {}
        """Of which generation each asked for its share: one before the last, if that was not written."""

    def step(self, verb: str, name: str) -> None:
        who = self.world.consumers.get(name)
        match verb.split():
            case ["join"]:
                self.say(f"join {name}{' instance=d' * (name == STATIC)}")
            case ["advance"]:
                self.say(f"advance {name}")
            case ["gather"]:
                self.gather()
            case ["failover" | "hold" | "release"]:
                self.say(verb)
            case ["lose"]:
                self.say("release NOT_LEADER_OR_FOLLOWER")
            case ["doubt"]:
                self.doubt()
            case _ if who is not None and who.member_id:
                self.step_of_a_member(verb, who)
            case _:
                pass

    def step_of_a_member(self, verb: str, who: Consumer) -> None:
        match verb.split():
            case ["crash"]:
                self.ghosts[who.name] = who.member_id, who.generation
                who.member_id = ""
            case ["commit", "as", "a", "ghost"]:
                if who.name in self.ghosts:
                    self.commit_as_a_ghost(who)
            case ["rejoin"]:
                self.say(f"join {who.name} version=3")
            case ["sync"]:
                self.say(f"sync {who.name} {self.shares(who.name)}")
            case ["sync", "late"]:
                self.say(f"sync {who.name} generation={who.generation - 1} {self.shares(who.name)}")
            case ["heartbeat" | "leave"]:
                self.say(f"{verb} {who.name}")
            case ["commit"]:
                self.commit(who, who.generation)
            case ["commit", "late"]:
                self.commit(who, who.generation - 1)
            case ["commit", "early"]:
                self.commit(who, who.generation + 1)
            case _:
                raise AssertionError(verb)

    def gather(self) -> None:
        """All that have an id come together, as they would if nobody disturbed them."""
        known = [who.name for who in self.world.consumers.values() if who.member_id]
        for name in known * 2:
            self.say(f"join {name} version=3")
        self.say(f"advance {2 * INITIAL_DELAY_MS}")
        for name in known:
            if self.world.consumers[name].member_id:
                self.say(f"sync {name} {self.shares(name)}")

    def commit(self, who: Consumer, generation: int) -> None:
        """Commit the next offset; whoever is not of this generation must be refused."""
        group = self.world.shard.groups.get(GROUP)
        may = group is not None and who.member_id in group.members and generation == group.generation
        simple = (group is None or group.state is GroupState.EMPTY) and generation < 0
        self.next_offset += 1
        lines = self.world.run(
            f"commit {who.name} orders-0 offset={self.next_offset} generation={generation}"
        )
        # What is answered at once may overtake what still waits for the log.
        is_answered = any(line.startswith(f"{who.name} commit ") for line in lines)
        waiting = self.asked.setdefault(who.name, [])
        waiting.insert(0 if is_answered else len(waiting), (self.next_offset, may or simple))
        for line in lines:
            self.hear(line)

    def commit_as_a_ghost(self, who: Consumer) -> None:
        """What crashed was not dead: it commits as the member it was."""
        member_id, who.member_id = who.member_id, self.ghosts[who.name][0]
        self.commit(who, self.ghosts[who.name][1])
        who.member_id = member_id

    def doubt(self) -> None:
        """What is under way reaches the log, but nobody hears of it in time."""
        for write in self.world.held or []:
            self.world.log.extend(write.records)
        self.say("release REQUEST_TIMED_OUT")

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
        verb, _, rest = command.partition(" ")
        if verb == "sync":
            self.sync(rest)
            return
        for line in self.world.run(command):
            self.hear(line)

    def sync(self, rest: str) -> None:
        name, _, told = rest.partition(" generation=")
        name = name.split()[0]
        waiting = self.synced.get(name)
        self.synced[name] = int(told.split()[0]) if told else self.world.consumers[name].generation
        lines = self.world.run(f"sync {rest}")
        for line in lines:
            self.hear(line)
        if waiting is not None and any(line.startswith(f"{name} sync ") for line in lines):
            self.synced[name] = waiting  # What is answered at once may overtake what still waits for the log.

    def hear(self, line: str) -> None:
        words = line.split()
        name = words[0]
        if " sync assigned " in line and words[3] != "nothing":
            who, generation = self.world.consumers[name], self.synced[name]
            self.generation = max(self.generation, generation)
            for partition in words[3].split("+"):
                owner = self.owners.setdefault((generation, partition), who.instance_id or who.member_id)
                assert owner == (who.instance_id or who.member_id), f"two owners of {partition}: {line}"
        elif any(word in line for word in STRANGERS):
            self.world.consumers[name].member_id = ""
        elif " joined " in line:
            generation = self.world.consumers[name].generation
            assert generation >= self.generation, f"generation went back: {line}"
        elif " commit " in line:
            offset, may = self.asked[name].pop(0)
            if words[2] == "NONE":
                assert may, f"a commit of another generation was taken: {line}"
                assert offset > self.acknowledged, "acknowledgements came out of order"
                self.acknowledged = offset

    def check(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        said = self.world.run("fetch orders-0")[0]
        fetched = int(said.partition("committed=")[2])
        assert fetched >= self.acknowledged, f"{self.acknowledged} was acknowledged, {said}"
        assert fetched >= self.fetched, f"the offset went back from {self.fetched}: {said}"
        self.fetched = fetched
        if group is not None and group.state is not GroupState.EMPTY:
            assert group.leader in group.members or not group.members
        if group is not None and group.state is GroupState.STABLE:
            assert all(member.awaiting_sync is None for member in group.members.values())


@settings(max_examples=300)
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
