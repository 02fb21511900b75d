"""The core as a whole: its size, its order, and what must hold after whatever happens."""

import random
from dataclasses import replace

import pytest

from ottla.controller.core import Controller
from ottla.controller.effects import (
    Decided,
    LeaderAndIsrEntry,
    Resign,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    WriteStates,
)
from ottla.controller.events import BrokersChanged, StatesWritten, TookOffice, TopicFound, TopicsChanged
from ottla.controller.placement import place_shifted
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment
from support.bench.controller_world import ControllerWorld, broker


def a_cluster(brokers: int, partitions: int, replicas: int = 3) -> TookOffice:
    """A cluster at rest: every partition led by its first replica, every ISR full."""
    ids = [BrokerId(number) for number in range(1, brokers + 1)]
    placed = dict(place_shifted(ids, partitions, replicas))
    states = {
        TopicPartition("orders", index): LeaderAndIsr(held[0], LeaderEpoch(0), held, 0, 1)
        for index, held in placed.items()
    }
    found = TopicFound(
        TopicId(b"0123456789abcdef"), {i: ReplicaAssignment(held) for i, held in placed.items()}
    )
    return TookOffice(tuple(broker(b, 100 + b) for b in ids), {"orders": found}, states)


def in_office(event: TookOffice) -> Controller:
    controller = Controller(BrokerId(1), 2)
    controller.handle(event)
    return controller


def test_a_hundred_brokers_each_hear_what_concerns_them_once():
    office = a_cluster(brokers=100, partitions=1_000)
    controller = in_office(office)

    orders = controller.handle(BrokersChanged(office.brokers[1:]))
    effects = controller.handle(StatesWritten())

    assert [type(effect) for effect in orders][-1] is WriteStates
    told = [effect for effect in effects if isinstance(effect, SendLeaderAndIsr)]
    metadata = [effect for effect in effects if isinstance(effect, SendUpdateMetadata)]
    hosting = {b for e in told for entry in e.entries for b in entry.assignment.replicas} - {1}
    assert {effect.broker for effect in told} == hosting
    assert len(told) == len(hosting)
    assert len(metadata) == 1
    assert [target for target, _ in metadata[0].targets] == list(range(2, 101))
    assert all(entry.state.leader != 1 for effect in told for entry in effect.entries)


def test_replicas_of_a_partition_share_one_entry():
    """So that the edge can encode it once."""
    office = a_cluster(brokers=3, partitions=1)
    controller = Controller(BrokerId(1), 2)

    effects = controller.handle(office)

    entries: list[LeaderAndIsrEntry] = [e.entries[0] for e in effects if isinstance(e, SendLeaderAndIsr)]
    assert len(entries) == 3
    assert all(entry is entries[0] for entry in entries)


def test_requests_carry_the_epoch_of_the_broker_they_go_to():
    effects = Controller(BrokerId(1), 2).handle(a_cluster(brokers=3, partitions=3))

    assert {(e.broker, e.broker_epoch) for e in effects if isinstance(e, SendLeaderAndIsr)} == {
        (1, 101),
        (2, 102),
        (3, 103),
    }
    assert all(
        target in {(1, 101), (2, 102), (3, 103)}
        for e in effects
        if isinstance(e, SendUpdateMetadata)
        for target in e.targets
    )


def test_nothing_is_sent_before_the_write_has_its_outcome():
    office = a_cluster(brokers=3, partitions=30)
    controller = in_office(office)

    before = controller.handle(BrokersChanged(office.brokers[1:]))

    sent = [e for e in before if isinstance(e, SendLeaderAndIsr | SendUpdateMetadata | SendStopReplica)]
    assert sent == []
    assert controller.context.partitions[TopicPartition("orders", 0)].leader == 1


def test_news_in_the_middle_of_a_turn_is_a_mistake_of_the_host():
    office = a_cluster(brokers=3, partitions=3)
    controller = in_office(office)
    controller.handle(BrokersChanged(office.brokers[1:]))

    with pytest.raises(AssertionError, match="before the turn"):
        controller.handle(BrokersChanged(office.brokers))
    with pytest.raises(AssertionError, match="no turn waits"):
        in_office(office).handle(StatesWritten())


def test_every_election_leaves_its_reason():
    office = a_cluster(brokers=3, partitions=3)
    controller = in_office(office)
    controller.handle(BrokersChanged(office.brokers[1:], cause="broker 1 died"))

    effects = controller.handle(StatesWritten())

    decided = [effect for effect in effects if isinstance(effect, Decided)]
    assert len(decided) == 1
    assert decided[0].cause == "broker 1 died"
    assert decided[0].controller_epoch == 2
    first = decided[0].decisions[0]
    assert (first.partition, first.rule.value) == (("orders", 0), "offline partition")
    assert first.before is not None
    assert first.after is not None
    assert (first.before.leader, first.after.leader, first.online) == (1, 2, {2, 3})


def test_a_controller_that_gives_way_keeps_the_reasons_of_what_it_wrote():
    office = a_cluster(brokers=3, partitions=3)
    controller = in_office(office)
    (order,) = [
        e for e in controller.handle(BrokersChanged(office.brokers[1:])) if isinstance(e, WriteStates)
    ]
    lost, *kept = order.states
    newer = replace(order.states[lost], controller_epoch=99)

    effects = controller.handle(StatesWritten({lost: newer}))

    decided = [d.partition for e in effects if isinstance(e, Decided) for d in e.decisions]
    assert isinstance(effects[-1], Resign)
    assert lost not in decided
    assert set(decided) <= set(kept)


def test_the_same_events_give_the_same_effects():
    def told() -> list[object]:
        office = a_cluster(brokers=5, partitions=40)
        controller = Controller(BrokerId(1), 2)
        effects: list[object] = [*controller.handle(office)]
        effects += controller.handle(BrokersChanged(office.brokers[2:]))
        return effects + list(controller.handle(StatesWritten()))

    assert told() == told()


def test_the_full_metadata_of_a_new_broker_leaves_out_nothing_but_dying_topics():
    office = a_cluster(brokers=3, partitions=12)
    late = broker(4, 104)
    controller = in_office(office)

    effects = controller.handle(BrokersChanged((*office.brokers, late)))

    to_new = [e for e in effects if isinstance(e, SendUpdateMetadata) and e.targets == ((4, 104),)]
    assert len(to_new) == 1
    assert len(to_new[0].entries) == 12
    assert [registration.broker for registration in to_new[0].brokers] == [1, 2, 3, 4]


def test_a_topic_that_is_not_in_the_list_any_more_is_forgotten():
    controller = in_office(a_cluster(brokers=3, partitions=3))

    controller.handle(TopicsChanged(frozenset(), {}))

    assert controller.context.partitions == {}
    assert controller.context.topic_names == {}


class Gauntlet:
    """Random days in the life of a cluster, with what must hold checked after each event."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = ControllerWorld()
        self.world.is_quiet = True
        self.leaders: dict[tuple[TopicPartition, int], int] = {}
        self.names = [f"topic{n}" for n in range(4)]
        self.up = {1, 2, 3, 4}

    def run(self, steps: int) -> None:
        self.world.run("brokers 1 2 3 4")
        self.world.run("elect 1")
        for _ in range(steps):
            command = self.next_command()
            if command:
                self.world.run(command)
                self.check(command)
        self.heal()

    def next_command(self) -> str | None:
        world, rnd = self.world, self.random
        if world.controller is None or rnd.random() < 0.05:
            return f"elect {rnd.choice(sorted(self.up))}" if self.up else None
        kinds = (
            "die rise bounce topic grow delete deleted reassign cancel sync "
            "prefer rebalance shutdown shrink die_at conflict sync reports"
        )
        return getattr(self, "step_" + rnd.choice(kinds.split()))()

    def names_up(self, mark: int | None = None) -> str:
        return " ".join(f"{b}{'*' if b == mark else ''}" for b in sorted(self.up))

    def step_die(self) -> str | None:
        if len(self.up) < 2:
            return None
        self.up.discard(self.random.choice(sorted(self.up)))
        return f"brokers {self.names_up()}"

    def step_rise(self) -> str | None:
        down = sorted({1, 2, 3, 4} - self.up)
        if not down:
            return None
        self.up.add(self.random.choice(down))
        return f"brokers {self.names_up()}"

    def step_bounce(self) -> str:
        return f"brokers {self.names_up(self.random.choice(sorted(self.up)))}"

    def step_topic(self) -> str | None:
        free = [name for name in self.names if name not in self.world.topics]
        if not free:
            return None
        return f"topic {free[0]} " + " ".join(f"{i}={self.replicas()}" for i in range(2))

    def replicas(self) -> str:
        chosen = self.random.sample([1, 2, 3, 4], self.random.randint(1, 3))
        return ",".join(str(b) for b in chosen)

    def step_grow(self) -> str | None:
        name = self.topic()
        return name and f"grow {name} {len(self.world.topics[name].partitions)}={self.replicas()}"

    def topic(self) -> str | None:
        return self.random.choice(sorted(self.world.topics)) if self.world.topics else None

    def partition(self) -> TopicPartition | None:
        keys = sorted(key for key in self.world.states if key.topic in self.world.topics)
        return self.random.choice(keys) if keys else None

    def step_delete(self) -> str | None:
        name = self.topic() if self.random.random() < 0.3 else None
        return name and f"delete {name}"

    def step_deleted(self) -> str | None:
        name = next(iter(self.world.deletions), None)
        if name is None or name not in self.world.topics:
            return None
        parts = " ".join(f"{name}-{i}" for i in self.world.topics[name].partitions)
        verb = "deleted" if self.random.random() < 0.8 else "refused"
        return f"{verb} {self.random.choice(sorted(self.up))} {parts}"

    def step_reassign(self) -> str | None:
        key = self.partition()
        return key and f"reassign {key}={self.replicas()}"

    def step_cancel(self) -> str | None:
        key = self.partition()
        return key and f"cancel {key}"

    def step_sync(self) -> str:
        return "sync"

    def step_prefer(self) -> str:
        return "prefer all"

    def step_rebalance(self) -> str:
        return "rebalance"

    def step_shutdown(self) -> str:
        return f"shutdown {self.random.choice(sorted(self.up))}"

    def step_shrink(self) -> str | None:
        key = self.partition()
        state = None if key is None else self.world.states[key]
        if key is None or state is None or state.leader not in self.up:
            return None
        return f"alter {key} isr={state.leader}"

    def step_die_at(self) -> str:
        return f"dies-at {self.random.choice(['WriteStates', 'WriteTopics', 'RemoveTopics'])}"

    def step_conflict(self) -> str | None:
        """A broker of old shrinks an ISR itself, behind the controller's back."""
        key = self.partition()
        state = None if key is None else self.world.states[key]
        if key is None or state is None or state.leader not in state.isr:
            return None
        return f"state {key} leader={state.leader} isr={state.leader} epoch={state.leader_epoch}"

    def step_reports(self) -> str | None:
        key = self.partition()
        sign = self.random.choice(["", "+"])
        return key and f"reports {self.random.choice(sorted(self.up))} {sign}{key}"

    def check(self, command: str) -> None:
        for key, old, state in self.world.written:
            say = f"after {command!r}: {key} {state}, before {old}"
            self.check_write(say, key, old, state)
        self.world.written.clear()
        for key, state in self.world.states.items():
            replicas = self.world.topics[key.topic].partitions[key.partition].replicas
            assert set(state.isr) <= set(replicas), f"after {command!r}: {key} {state} {replicas}"
        self.check_memory(command)

    def check_write(
        self, say: str, key: TopicPartition, old: LeaderAndIsr | None, state: LeaderAndIsr
    ) -> None:
        assert state.isr, say
        assert len(set(state.isr)) == len(state.isr), say
        assert state.leader == -1 or state.leader in state.isr, say
        if old is None:
            self.leaders = {k: v for k, v in self.leaders.items() if k[0] != key}
            assert (state.leader_epoch, state.partition_epoch) == (0, 0), say
        else:
            assert state.partition_epoch == old.partition_epoch + 1, say
            assert state.leader_epoch - old.leader_epoch in (0, 1), say
            assert state.leader == old.leader or state.leader_epoch > old.leader_epoch, say
            assert state.leader == -1 or state.leader in old.isr, say
            assert state.leader != -1 or not self.up & set(old.isr) - self.leaving(), say
        if state.leader != -1:
            first = self.leaders.setdefault((key, state.leader_epoch), state.leader)
            assert first == state.leader, f"two leaders in one epoch {say}"

    def leaving(self) -> set[int]:
        """Brokers that may not lead: on their way out, or with a failed directory."""
        controller = self.world.controller
        if controller is None:
            return set(self.up)
        return {*controller.context.shutting_down, *controller.context.offline_replicas}

    def check_memory(self, command: str) -> None:
        """What the controller believes is what ZooKeeper holds, or older than a write behind its back."""
        if self.world.controller is None:
            return
        for key, partition in self.world.controller.context.partitions.items():
            there = self.world.states.get(key)
            if partition.state is not None and there is not None:
                assert partition.state.partition_epoch <= there.partition_epoch, f"{command!r} {key}"
                if partition.state.partition_epoch == there.partition_epoch:
                    assert partition.state == there, f"{command!r} {key}"

    def heal(self) -> None:
        """All brokers in a new life, a fresh controller, caught-up followers: nothing may be left undone."""
        world = self.world
        world.halt_at = None
        self.up = {1, 2, 3, 4}
        world.controller = None
        world.run("brokers 1* 2* 3* 4*")
        world.run("elect 1")
        for _ in range(3):
            for name in list(world.deletions):
                parts = " ".join(f"{name}-{i}" for i in world.topics[name].partitions)
                for number in (1, 2, 3, 4):
                    if name in world.topics:
                        world.run(f"deleted {number} {parts}")
            world.run("sync")
        world.run("prefer all")
        assert world.deletions == {}
        for name, found in world.topics.items():
            for index, assignment in found.partitions.items():
                state = world.states[TopicPartition(name, index)]
                assert not assignment.is_being_reassigned, f"{name}-{index} {assignment}"
                assert set(state.isr) == set(assignment.replicas), f"{name}-{index} {state} {assignment}"
                assert state.leader == assignment.replicas[0], f"{name}-{index} {state} {assignment}"


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_states_stay_sound_and_the_cluster_heals(seed: int):
    Gauntlet(seed).run(steps=150)
