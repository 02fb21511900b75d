"""What a controller does when a watch fires: read again, arm again, and say what it found as an event."""

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, TypeAlias

from ottla.broker.controlling.reads import (
    ControllerReads,
    list_deaths,
    read_deaths,
    read_isr_notifications,
    read_log_dir_events,
    read_preferred_elections,
    read_reassignments,
)
from ottla.broker.controlling.steps import TermEnded, list_children
from ottla.broker.controlling.writes import ControllerWrites
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.controller.context import ControllerContext
from ottla.controller.events import (
    BrokersChanged,
    DeletionsRequested,
    IsrNotified,
    LogDirsFailed,
    News,
    PreferredElectionWritten,
    ReassignmentsWritten,
    TookOffice,
    TopicChanged,
    TopicsChanged,
)
from ottla.model.cluster import BrokerRegistration
from ottla.model.ids import BrokerId, TopicPartition
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import FeatureNode, decode_feature, encode_feature
from ottla.znodes.codec_death import Death
from ottla.zookeeper.ops import Create, Data, Failed, GetData, SetData, WatchEvent, ZkCode

Found: TypeAlias = Generator[Any, Any, News | None]
Duty: TypeAlias = Callable[[], Found]


class Duties:
    """The duties of one term, and the watches that call for them."""

    def __init__(
        self,
        runtime: Runtime,
        context: ControllerContext,
        reads: ControllerReads,
        writes: ControllerWrites,
        hint: Callable[[str, Duty], None],
    ) -> None:
        """``hint`` hears that something may have changed, and how to look."""
        self._runtime = runtime
        self._context = context
        self._reads = reads
        self._writes = writes
        self._hint = hint
        self._watched: dict[str, Callable[[WatchEvent], None]] = {}
        self._listed: frozenset[BrokerId] = frozenset()
        """The brokers whose registrations are watched."""

    # ---- watches

    def _watch(self, path: str, name: str, duty: Duty) -> None:
        if path in self._watched:
            return

        def fired(event: WatchEvent) -> None:
            self._hint(name, duty)

        self._watched[path] = fired
        self._runtime.zk.watch(path, fired)

    def unwatch(self, nodes: Iterable[str] | None = None) -> None:
        """Do not listen any more."""
        for path in list(self._watched) if nodes is None else nodes:
            handler = self._watched.pop(path, None)
            if handler is not None:
                self._runtime.zk.unwatch(path, handler)

    def unwatch_topics(self, topics: Iterable[str]) -> None:
        """The topics are gone."""
        self.unwatch([paths.topic(topic) for topic in topics])

    def _watch_topics(self, names: Iterable[str]) -> None:
        for name in names:
            self._watch(paths.topic(name), f"topic {name}", partial(self.topic, name))

    # ---- taking office

    def take_office(self) -> Found:
        """Listen first, then read everything: what changes meanwhile comes as a hint afterwards."""
        yield from self._agree_on_features()
        self._watch(paths.BROKER_IDS, "brokers", self.brokers)
        self._watch(paths.TOPICS, "topics", self.topics)
        self._watch(paths.DELETE_TOPICS, "deletions", self.deletions)
        self._watch(paths.LOG_DIR_EVENT_NOTIFICATION, "log directory events", self.log_dir_events)
        self._watch(paths.ISR_CHANGE_NOTIFICATION, "ISR notifications", self.isr_notifications)
        self._watch(paths.REASSIGN_PARTITIONS, "reassignments", self.reassignments)
        self._watch(paths.PREFERRED_REPLICA_ELECTION, "preferred elections", self.preferred_elections)
        yield from self._writes.clear_children(paths.LOG_DIR_EVENT_NOTIFICATION)
        yield from self._writes.clear_children(paths.ISR_CHANGE_NOTIFICATION)
        brokers = yield from self._brokers()
        names = yield from list_children(paths.TOPICS, watch=True)
        self._watch_topics(names)
        topics = yield from self._reads.read_topics(names)
        states = yield from self._reads.read_states(
            [TopicPartition(name, index) for name, found in topics.items() for index in found.partitions]
        )
        deletions = yield from self._deletions()
        reassignments = yield from read_reassignments()
        preferred = yield from read_preferred_elections()
        cause = yield from self._why_in_office(brokers)
        return TookOffice(brokers, topics, states, deletions, reassignments, preferred, cause)

    def _why_in_office(self, brokers: tuple[BrokerRegistration, ...]) -> Steps[str]:
        cause = f"broker {self._runtime.identity.broker_id} took office"
        alive = {broker.broker for broker in brokers}
        deaths = yield from read_deaths((yield from list_deaths()).difference(alive))
        found = [f"broker {number} not alive: {death.words}" for number, death in sorted(deaths.items())]
        return f"{cause} and found {', '.join(found)}" if found else cause

    def _agree_on_features(self) -> Steps[None]:
        """``/feature`` shall say that no features are finalized, as Kafka 3.9 does in ZooKeeper mode."""
        wanted = FeatureNode()
        found = yield from persistently(GetData(paths.FEATURE))
        if isinstance(found, Data):
            try:
                node = decode_feature(found.data)
            except MalformedZnode:
                node = FeatureNode(version=0)
            if node.version != wanted.version or not node.is_enabled:
                yield from persistently(SetData(paths.FEATURE, encode_feature(wanted), found.stat.version))
        elif isinstance(found, Failed) and found.code is ZkCode.NO_NODE:
            yield from persistently(Create(paths.FEATURE, encode_feature(wanted)))
        else:
            raise TermEnded(f"{paths.FEATURE} cannot be read: {found}")

    # ---- hints

    def brokers(self) -> Found:
        """Who is registered now."""
        brokers = yield from self._brokers()
        known = self._context.brokers
        now = {broker.broker: broker for broker in brokers}
        gone = sorted(known.keys() - now.keys())
        deaths = yield from read_deaths(gone)
        words = [f"broker {number} joined" for number in sorted(now.keys() - known.keys())]
        words += [_gone(known[number], deaths.get(number)) for number in gone]
        words += [
            f"broker {number} began a new life"
            for number in sorted(known.keys() & now.keys())
            if known[number].epoch != now[number].epoch
        ]
        return BrokersChanged(brokers, ", ".join(words) or "broker endpoints changed")

    def _brokers(self) -> Steps[tuple[BrokerRegistration, ...]]:
        """Listen first, here too, and also for what cannot be read: it may be written yet."""
        listed = yield from self._reads.list_brokers()
        self.unwatch([paths.broker(number) for number in self._listed.difference(listed)])
        self._listed = frozenset(listed)
        for number in listed:
            self._watch(paths.broker(number), "brokers", self.brokers)
        return (yield from self._reads.read_brokers(listed))

    def topics(self) -> Found:
        """Which topics there are, and what the new ones look like."""
        names = yield from list_children(paths.TOPICS, watch=True)
        known = self._context.topics
        new = [name for name in names if name not in known or paths.topic(name) not in self._watched]
        self._watch_topics(new)
        found = yield from self._reads.read_topics(new)
        there = frozenset(names)
        gone = [name for name in known if name not in there]
        self.unwatch_topics(gone)
        words = [f"topic {name} created" for name in found if name not in known] + [
            f"topic {name} vanished" for name in gone
        ]
        shown = ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
        return TopicsChanged(there, found, cause=shown or "topics listed")

    def topic(self, name: str) -> Found:
        """How a topic looks now."""
        if name not in self._context.topics:
            return (yield from self.topics())
        found = yield from self._reads.read_topics([name])
        return TopicChanged(name, found[name], f"topic {name} changed") if name in found else None

    def deletions(self) -> Found:
        """Which topics shall be deleted."""
        names = yield from self._deletions()
        return DeletionsRequested(names, f"deletion of {len(names)} topics requested") if names else None

    def _deletions(self) -> Steps[tuple[str, ...]]:
        names = yield from list_children(paths.DELETE_TOPICS, watch=True)
        if names and not self._runtime.config.topics.delete_topic_enable:
            yield from self._writes.clear([paths.delete_topic(name) for name in names])
            return ()
        return names

    def isr_notifications(self) -> Found:
        """States that brokers of old wrote themselves."""
        names = yield from list_children(paths.ISR_CHANGE_NOTIFICATION, watch=True)
        if not names:
            return None
        partitions = yield from read_isr_notifications(names)
        states = yield from self._reads.read_states(partitions)
        return IsrNotified(names, states)

    def log_dir_events(self) -> Found:
        """Brokers whose log directory failed."""
        names = yield from list_children(paths.LOG_DIR_EVENT_NOTIFICATION, watch=True)
        if not names:
            return None
        brokers = yield from read_log_dir_events(names)
        return LogDirsFailed(names, brokers)

    def reassignments(self) -> Found:
        """The old tool's reassignments."""
        targets = yield from read_reassignments()
        return None if targets is None else ReassignmentsWritten(targets)

    def preferred_elections(self) -> Found:
        """The old tool's preferred elections."""
        partitions = yield from read_preferred_elections()
        return None if partitions is None else PreferredElectionWritten(partitions)

    def look_for_reassignments(self) -> None:
        """The znode was removed: watch for the next one."""
        self._hint("reassignments", self.reassignments)

    def look_for_preferred_elections(self) -> None:
        """The znode was removed: watch for the next one."""
        self._hint("preferred elections", self.preferred_elections)


def _gone(broker: BrokerRegistration, death: Death | None) -> str:
    """With the guard's words, if they are about this very life."""
    gone = f"broker {broker.broker} is gone"
    return f"{gone}: {death.words}" if death is not None and death.epoch == broker.epoch else gone
