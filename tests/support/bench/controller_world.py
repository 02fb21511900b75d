"""A controller over a ZooKeeper that is a dictionary, for scenarios, tables and properties.

The world keeps what ZooKeeper would hold, carries out the orders as the real host does (each state only onto
its version), and tells what happened in one line an effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from ottla.config.areas import TopicsConfig
from ottla.config.log import LogConfig
from ottla.controller.core import Controller
from ottla.controller.effects import (
    Breathe,
    ClearDeletionMarkers,
    ClearPreferredElection,
    Decided,
    Decision,
    Effect,
    KeepReassignments,
    ReadTopics,
    ReadUncleanTopics,
    RemoveTopics,
    Resign,
    WriteNewTopics,
    WriteStates,
    WriteTopics,
)
from ottla.controller.events import (
    AlterPartitionRequested,
    Breathed,
    BrokersChanged,
    ControlledShutdownRequested,
    DeletionsRequested,
    ElectionType,
    ElectLeadersRequested,
    Event,
    IsrChange,
    IsrNotified,
    LogDirsFailed,
    PartitionsRequested,
    PartitionsWanted,
    PreferredElectionWritten,
    ReassignmentRequested,
    ReassignmentsListed,
    ReassignmentsWritten,
    RebalanceDue,
    ReplicasDeleted,
    ReplicasReported,
    StatesWritten,
    TookOffice,
    TopicChanged,
    TopicCreationRequested,
    TopicFound,
    TopicsChanged,
    TopicsRead,
    TopicsRemoved,
    TopicsWritten,
    TopicWanted,
    UncleanElectionEnabled,
    UncleanTopicsRead,
)
from ottla.controller.placement import PlacementRule
from ottla.model.cluster import BrokerRegistration
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from support.bench.controller_words import assignment_text, broker, described, ids, joined, key_of, tell

WRITES = (
    WriteStates,
    WriteTopics,
    WriteNewTopics,
    RemoveTopics,
    KeepReassignments,
    ClearPreferredElection,
    ClearDeletionMarkers,
)


class ControllerWorld:
    """One controller at a time, and everything that outlives it."""

    def __init__(self) -> None:
        self.controller: Controller | None = None
        self.controller_epoch = 0
        self.brokers: dict[BrokerId, BrokerRegistration] = {}
        self.topics: dict[str, TopicFound] = {}
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.written: list[tuple[TopicPartition, LeaderAndIsr | None, LeaderAndIsr]] = []
        """Every state that was written by a controller, with the one it replaced."""
        self.unreadable: set[TopicPartition] = set()
        self.deletions: dict[str, None] = {}
        self.unclean: set[str] = set()
        self.reassignments: Mapping[TopicPartition, tuple[BrokerId, ...]] | None = None
        self.preferred: tuple[TopicPartition, ...] | None = None
        self.said: list[str] = []
        self.is_quiet = False
        self.effects: list[Effect] = []
        self.decisions: list[Decision] = []
        self.rivals: dict[str, TopicFound] = {}
        """Topics that others create before the controller's next write of new ones."""
        self.halt_at: type | None = None
        """The controller dies instead of carrying out the next order of this kind."""
        self.dies_at: tuple[int, bool] | None = None
        """The number of the order at which the controller dies, and whether that one is still carried out."""
        self.orders = 0
        self._ids = itertools.count(1)
        self._tokens = itertools.count(1)
        self._zxid = itertools.count(100)

    # -- the text interface

    def run(self, command: str) -> list[str]:
        """Carry out one line of a scenario."""
        words = command.split()
        getattr(self, f"do_{words[0].replace('-', '_')}")(*words[1:])
        said, self.said = self.said, []
        return [] if self.is_quiet else said

    def do_quiet(self) -> None:
        """Say nothing of what follows: it only sets the stage."""
        self.is_quiet = True

    def do_aloud(self) -> None:
        self.is_quiet = False

    def do_brokers(self, *names: str) -> None:
        """These brokers are registered now; a star marks a new life, a colon a new port."""
        now: dict[BrokerId, BrokerRegistration] = {}
        for name in names:
            number, _, port = name.rstrip("*").partition(":")
            known = self.brokers.get(BrokerId(int(number)))
            epoch = known.epoch if known is not None and not name.endswith("*") else next(self._zxid)
            kept_port = known.endpoints[0].port if known is not None else 9092
            now[BrokerId(int(number))] = broker(int(number), epoch, int(port or kept_port))
        self.brokers = now
        if self.controller is not None:
            self.feed(BrokersChanged(tuple(self.brokers.values())))

    def do_elect(self, number: str = "1") -> None:
        """That broker becomes controller."""
        self.controller_epoch += 1
        self.controller = Controller(BrokerId(int(number)), self.controller_epoch)
        self.feed(
            TookOffice(
                tuple(self.brokers.values()),
                dict(self.topics),
                {k: s for k, s in self.states.items() if k not in self.unreadable},
                tuple(self.deletions),
                self.reassignments,
                self.preferred,
            )
        )

    def do_resign(self) -> None:
        self.controller = None

    def do_dies_at(self, order: str) -> None:
        """The controller dies when it orders the next write of this kind."""
        self.halt_at = {write.__name__: write for write in WRITES}[order]

    def do_topic(self, name: str, *partitions: str, id_is_new: bool = False) -> None:
        """Somebody creates a topic: ``0=1,2,3``."""
        self.topics[name] = TopicFound(self._new_id(), self._assignments(partitions), id_is_new)
        self._topics_changed()

    def do_race(self, name: str, *partitions: str) -> None:
        """Another broker creates a topic just before the controller's next write; its watch fires later."""
        self.rivals[name] = TopicFound(self._new_id(), self._assignments(partitions))

    def do_watch_fires(self) -> None:
        self._topics_changed()

    def do_create(self, name: str, *words: str) -> None:
        """CreateTopics: ``partitions=3 factor=2``, or by hand ``0=1,2``; ``validate`` writes nothing."""
        given = dict(word.split("=") for word in words if "=" in word)
        counts = [int(given.pop(count, -1)) for count in ("partitions", "factor")]
        by_hand = tuple((int(index), ids(given.pop(index))) for index in list(given) if index.isdigit())
        wanted = TopicWanted(name, *counts, by_hand, tuple(given.items()), self._new_id(), 0, 0)  # type: ignore[call-arg]
        self.request_topics(wanted, validate_only="validate" in words)

    def request_topics(self, *wanted: TopicWanted, validate_only: bool = False) -> None:
        rule = PlacementRule.SHIFTED
        self.feed(
            TopicCreationRequested(
                next(self._tokens), wanted, validate_only, TopicsConfig(), LogConfig(), rule
            )
        )

    def do_add_partitions(self, name: str, count: str, *replicas: str) -> None:
        """CreatePartitions up to that number, by hand if replicas are given."""
        by_hand = tuple(ids(text) for text in replicas if text != "validate") or None
        wanted = (PartitionsWanted(name, int(count), by_hand),)
        validate_only = "validate" in replicas
        self.feed(PartitionsRequested(next(self._tokens), wanted, validate_only, PlacementRule.SHIFTED))

    def _new_id(self) -> TopicId:
        return TopicId(next(self._ids).to_bytes(16, "big"))

    def do_old_topic(self, name: str, *partitions: str) -> None:
        """A topic from before topic ids."""
        self.do_topic(name, *partitions, id_is_new=True)

    def do_grow(self, name: str, *partitions: str) -> None:
        found = self.topics[name]
        self.topics[name] = TopicFound(found.topic_id, {**found.partitions, **self._assignments(partitions)})
        if self.controller is not None:
            self.feed(TopicChanged(name, self.topics[name]))

    def do_vanish(self, name: str) -> None:
        """Somebody removes the topic's znodes by hand."""
        self._remove(name)
        self._topics_changed()

    def _topics_changed(self) -> None:
        if self.controller is None:
            return
        known = self.controller.context.topics
        found = {name: f for name, f in self.topics.items() if name not in known}
        states = {k: s for k, s in self.states.items() if k.topic in found}
        self.feed(TopicsChanged(frozenset(self.topics), found, states))

    @staticmethod
    def _assignments(partitions: Iterable[str]) -> dict[int, ReplicaAssignment]:
        pairs = (text.split("=") for text in partitions)
        return {int(index): ReplicaAssignment(ids(replicas)) for index, replicas in pairs}

    def do_state(self, partition: str, *fields: str) -> None:
        """Write a state behind the controller's back."""
        key = key_of(partition)
        given = dict(field.split("=") for field in fields)
        old = self.states.get(key)
        self.states[key] = LeaderAndIsr(
            BrokerId(int(given["leader"])),
            LeaderEpoch(int(given.get("epoch", old.leader_epoch if old else 0))),
            ids(given["isr"]),
            old.partition_epoch + 1 if old else 0,
            int(given.get("controller", max(1, self.controller_epoch))),
            LeaderRecoveryState(int(given.get("recovery", 0))),
        )

    def do_spoil(self, partition: str) -> None:
        """Make a state unreadable."""
        self.unreadable.add(key_of(partition))
        self.states.setdefault(key_of(partition), LeaderAndIsr(BrokerId(-1), LeaderEpoch(0), (), 0, 0))

    def do_alter(self, partition: str, *fields: str) -> None:
        """A leader proposes an ISR; what is not given is as the state stands."""
        key = key_of(partition)
        given = dict(field.split("=") for field in fields)
        state = self.states.get(key, LeaderAndIsr(BrokerId(1), LeaderEpoch(0), (), 0, 0))
        sender = BrokerId(int(given.get("by", state.leader)))
        isr = ids(given["isr"])
        member_epochs = (
            [int(epoch) for epoch in given["members"].split(",")] if "members" in given else [-1] * len(isr)
        )
        change = IsrChange(
            key,
            LeaderEpoch(int(given.get("epoch", state.leader_epoch))),
            int(given.get("version", state.partition_epoch)),
            isr,
            tuple(member_epochs),
            LeaderRecoveryState(int(given.get("recovery", 0))),
        )
        known = self.brokers.get(sender)
        epoch = int(given.get("broker-epoch", known.epoch if known else 0))
        self.feed(AlterPartitionRequested(next(self._tokens), sender, epoch, (change,)))

    def do_sync(self, *partitions: str) -> None:
        """Every leader takes all its live replicas into the ISR."""
        keys = [key_of(p) for p in partitions] or list(self.states)
        for key in keys:
            if self.controller is None or key not in self.states:
                return
            state = self.states[key]
            replicas = self.topics[key.topic].partitions[key.partition].replicas
            isr = (*state.isr, *(r for r in replicas if r in self.brokers and r not in state.isr))
            if isr != state.isr:
                self.do_alter(str(key), f"isr={joined(isr)}")

    def do_shutdown(self, number: str, epoch: str | None = None) -> None:
        sender = BrokerId(int(number))
        known = self.brokers.get(sender)
        broker_epoch = int(epoch) if epoch is not None else known.epoch if known else 0
        self.feed(ControlledShutdownRequested(next(self._tokens), sender, broker_epoch))

    def do_delete(self, *topics: str) -> None:
        self.deletions.update(dict.fromkeys(topics))
        self.feed(DeletionsRequested(tuple(self.deletions)))

    def do_deleted(self, number: str, *partitions: str) -> None:
        self.feed(ReplicasDeleted(*self._life(number), tuple(key_of(p) for p in partitions)))

    def do_refused(self, number: str, *partitions: str) -> None:
        self.feed(ReplicasDeleted(*self._life(number), (), tuple(key_of(p) for p in partitions)))

    def _life(self, number: str) -> tuple[BrokerId, int]:
        """A broker and its epoch; ``2-`` is broker 2 in its last life."""
        sender = BrokerId(int(number.rstrip("-")))
        return sender, self.brokers[sender].epoch - number.endswith("-")

    def do_reassign(self, *targets: str) -> None:
        pairs = (text.split("=") for text in targets)
        wanted = {key_of(k): ids(replicas) for k, replicas in pairs}
        self.feed(ReassignmentRequested(next(self._tokens), wanted))

    def do_cancel(self, *partitions: str) -> None:
        self.feed(ReassignmentRequested(next(self._tokens), {key_of(p): None for p in partitions}))

    def do_list(self, *partitions: str) -> None:
        keys = tuple(key_of(p) for p in partitions) or None
        self.feed(ReassignmentsListed(next(self._tokens), keys))

    def do_znode_reassign(self, *targets: str) -> None:
        self.reassignments = {key_of(k): ids(r) for k, r in (text.split("=") for text in targets)}
        if self.controller is not None:
            self.feed(ReassignmentsWritten(self.reassignments))

    def do_znode_prefer(self, *partitions: str) -> None:
        self.preferred = tuple(key_of(p) for p in partitions)
        if self.controller is not None:
            self.feed(PreferredElectionWritten(self.preferred))

    def do_prefer(self, *partitions: str) -> None:
        self._elect_leaders(ElectionType.PREFERRED, partitions)

    def do_unclean(self, *partitions: str) -> None:
        self._elect_leaders(ElectionType.UNCLEAN, partitions)

    def _elect_leaders(self, election: ElectionType, partitions: tuple[str, ...]) -> None:
        keys = tuple(key_of(p) for p in partitions) if partitions != ("all",) else None
        self.feed(ElectLeadersRequested(next(self._tokens), election, keys))

    def do_allow_unclean(self, topic: str) -> None:
        self.unclean.add(topic)
        if self.controller is not None:
            self.feed(UncleanElectionEnabled(topic))

    def do_rebalance(self, percentage: str = "10") -> None:
        self.feed(RebalanceDue(int(percentage)))

    def do_notify(self, *partitions: str) -> None:
        """A broker of old says that it wrote these states."""
        states = {key_of(p): self.states[key_of(p)] for p in partitions}
        self.feed(IsrNotified(("isr_change_0000000001",), states))

    def do_log_dir_event(self, number: str) -> None:
        self.feed(LogDirsFailed(("log_dir_event_0000000001",), frozenset({BrokerId(int(number))})))

    def do_reports(self, number: str, *words: str) -> None:
        """A broker's answer names failed directories (``orders-0``) or recovered ones (``+orders-0``)."""
        sender = BrokerId(int(number))
        given = dict(word.split("=") for word in words if "=" in word)
        partitions = [word for word in words if "=" not in word]
        offline = tuple(key_of(p) for p in partitions if not p.startswith("+"))
        online = tuple(key_of(p[1:]) for p in partitions if p.startswith("+"))
        epoch = int(given.get("epoch", self.brokers[sender].epoch))
        self.feed(ReplicasReported(sender, epoch, offline, online))

    def do_show(self) -> None:
        for name, found in self.topics.items():
            for index, assignment in found.partitions.items():
                state = self.states.get(TopicPartition(name, index))
                version = "" if state is None else f" version={state.partition_epoch}"
                self.said.append(
                    f"{name}-{index} replicas={assignment_text(assignment)} {described(state)}{version}"
                )
        if self.deletions:
            self.said.append("marked for deletion: " + " ".join(self.deletions))

    def do_why(self, partition: str) -> None:
        """The last decision about a partition."""
        for decision in reversed(self.decisions):
            if decision.partition == key_of(partition):
                words = f": {decision.why}" if decision.why else ""
                self.said.append(f"{partition} {decision.rule.value} -> {described(decision.after)}{words}")
                return
        self.said.append("no decision")

    # -- the host's part

    def feed(self, event: Event) -> list[Effect]:
        """Hand in an event and carry out everything it leads to."""
        assert self.controller is not None, "nobody is in office"
        made: list[Effect] = []
        effects = self.controller.handle(event)
        while True:
            made += effects
            outcome: Event | None = None
            for effect in effects:
                if self._dies_before(effect):
                    self.controller = None
                    self.said.append("the controller dies")
                    return made
                outcome = self._carry_out(effect) or outcome
                if self._dies_after(effect):
                    self.controller = None
                    return made
            if outcome is None:
                self.effects += made
                return made
            effects = self.controller.handle(outcome)

    def _dies_before(self, effect: Effect) -> bool:
        if self.halt_at is not None and isinstance(effect, self.halt_at):
            self.halt_at = None
            return True
        if not isinstance(effect, WRITES):
            return False
        self.orders += 1
        return self.dies_at == (self.orders, False)

    def _dies_after(self, effect: Effect) -> bool:
        return isinstance(effect, WRITES) and self.dies_at == (self.orders, True)

    def _carry_out(self, effect: Effect) -> Event | None:
        match effect:
            case WriteStates():
                return self._write_states(effect)
            case WriteTopics():
                return self._write_topics(effect)
            case WriteNewTopics():
                return self._write_new_topics(effect)
            case ReadTopics():
                found = {name: self.topics[name] for name in effect.names if name in self.topics}
                return TopicsRead(frozenset(self.topics), frozenset(self.deletions), found)
            case Breathe():
                return Breathed()
            case RemoveTopics():
                for name in effect.topics:
                    self._remove(name)
                    self.said.append(f"zk removed {name}")
                return TopicsRemoved()
            case ReadUncleanTopics():
                return UncleanTopicsRead(frozenset(effect.topics & self.unclean))
            case KeepReassignments():
                self.reassignments = effect.targets or None
            case ClearPreferredElection():
                self.preferred = None
            case ClearDeletionMarkers():
                for name in effect.topics:
                    self.deletions.pop(name, None)
            case Decided():
                self.decisions += effect.decisions
            case Resign():
                self.controller = None
        self.said += tell(effect)
        return None

    def _write_states(self, order: WriteStates) -> StatesWritten:
        conflicts: dict[TopicPartition, LeaderAndIsr | None] = {}
        for key, state in order.states.items():
            there = self.states.get(key)
            version = -1 if there is None else there.partition_epoch
            if key in self.unreadable or version != state.partition_epoch - 1:
                conflicts[key] = None if key in self.unreadable else there
                self.said.append(f"zk {key} conflict")
            else:
                self.states[key] = state
                self.written.append((key, there, state))
                self.said.append(f"zk {key} {described(state)}")
        return StatesWritten(conflicts)

    def _write_topics(self, order: WriteTopics) -> TopicsWritten:
        missing = frozenset(name for name in order.topics if name not in self.topics)
        for name, (topic_id, partitions) in order.topics.items():
            if name in missing:
                continue
            before = self.topics[name].partitions
            self.topics[name] = TopicFound(topic_id, dict(partitions))
            changed = [i for i, a in partitions.items() if before.get(i) != a]
            texts = " ".join(f"{i}={assignment_text(partitions[i])}" for i in changed)
            self.said.append(f"zk topic {name} {texts or 'id written'}")
        return TopicsWritten(missing)

    def _write_new_topics(self, order: WriteNewTopics) -> TopicsWritten:
        self.topics |= self.rivals
        self.rivals = {}
        refused = {}
        for name, new in order.topics.items():
            if name in self.topics:
                refused[name] = Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
                continue
            self.topics[name] = TopicFound(new.topic_id, new.partitions)
            texts = " ".join(f"{i}={assignment_text(a)}" for i, a in new.partitions.items())
            self.said.append(f"zk new topic {name} {texts}")
        return TopicsWritten(refused=refused)

    def _remove(self, name: str) -> None:
        self.topics.pop(name, None)
        self.deletions.pop(name, None)
        for key in [key for key in self.states if key.topic == name]:
            del self.states[key]
