"""Settings that change while the broker runs: topics' and brokers' overrides in ZooKeeper.

Nobody watches the entities themselves: whoever changes one also leaves a note under ``/config/changes``,
and every broker watches that (as Kafka's brokers do). Where somebody wrote by hand what nobody can read, what
held before holds on, and if nothing is known of before, every record is kept: a topic that loses its settings
must not lose the records that they keep.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.broker.settings.quota_nodes import QUOTA_KINDS, QuotaNodes
from ottla.broker.settings.reading import READS_AT_ONCE, read_all, read_until_shown
from ottla.broker.settings.users import Users
from ottla.config.areas import BrokerConfig
from ottla.config.broker_checks import broken_requirements
from ottla.config.broker_file import effective_values, unusable, with_values
from ottla.config.listening.tls import read_tls_listeners
from ottla.config.log import LogConfig
from ottla.config.setting import Value
from ottla.config.topic_config import unreadable_overrides, with_overrides
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import decode_config, decode_config_change
from ottla.zookeeper.ops import (
    Children,
    Data,
    Delete,
    GetChildren,
    GetData,
    MultiRead,
    ReadOp,
    WatchEvent,
)

log = logging.getLogger(__name__)

NOTE_LIFE_MS = 15 * 60 * 1000
"""Notes about changes are removed after a quarter of an hour."""

ALL_IS_KEPT = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""What stands in for settings that say which records go, where they cannot be read."""


class ConfigListener(Protocol):
    """Hears which settings changed."""

    def on_topic_config_changed(self, topic: str, config: LogConfig) -> None: ...

    def on_broker_config_changed(self, before: BrokerConfig, after: BrokerConfig) -> None: ...


class DynamicConfigs:
    """The file's settings with ZooKeeper's over them; the runtime holds what is in force."""

    def __init__(self, runtime: Runtime, metadata: MetadataImage) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self.users = Users()
        self.quotas = QuotaNodes()
        self.listeners: list[ConfigListener] = []
        self.static = static = runtime.config
        self.values: dict[str, Value] = effective_values(static.originals)
        """Every setting's value now."""
        self._default_overrides: dict[str, str] = {}
        self._own_overrides: dict[str, str] = {}
        self._topic_overrides: dict[str, dict[str, str]] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._last_note = -1
        self._is_reading = False
        self._must_read_again = False
        runtime.zk.watch(paths.CONFIG_CHANGES, self._on_note)

    # ---- what others ask

    def log_config(self, topic: str) -> LogConfig:
        """A topic's settings now: its overrides over the broker's defaults. All its partitions share them: a
        list of throttled replicas may be as long as there are partitions."""
        overrides = self._topic_overrides.get(topic)
        if not overrides:
            return self._runtime.config.log
        config = self._log_configs.get(topic)
        if config is None:
            config = self._log_configs[topic] = with_overrides(self._runtime.config.log, overrides)
        return config

    def log_configs(self) -> dict[str, LogConfig]:
        """The settings of every topic that has overrides."""
        return {topic: self.log_config(topic) for topic, own in self._topic_overrides.items() if own}

    def topic_overrides(self, topic: str) -> dict[str, str]:
        """What a topic sets for itself."""
        return self._topic_overrides.get(topic, {})

    def broker_overrides(self) -> tuple[dict[str, str], dict[str, str]]:
        """ZooKeeper's settings for this broker, and those for all brokers."""
        return self._own_overrides, self._default_overrides

    def unread(self, topics: Iterable[str]) -> list[str]:
        """The topics whose settings have not been read yet."""
        return [topic for topic in topics if topic not in self._topic_overrides]

    def forget_topics(self, topics: Iterable[str]) -> None:
        """The topics are gone; one of the same name will be another."""
        for topic in topics:
            self._topic_overrides.pop(topic, None)
            self._log_configs.pop(topic, None)

    # ---- reading

    def load(self) -> Steps[None]:
        """Read everything; the watch is armed first, so that no change is missed."""
        notes = yield from persistently(GetChildren(paths.CONFIG_CHANGES, watch=True))
        if isinstance(notes, Children):
            self._last_note = max((paths.sequence_number(name) for name in notes.names), default=-1)
        listed = yield from persistently(GetChildren(paths.CONFIG_TOPICS))
        if isinstance(listed, Children):
            topics = sorted({*listed.names, *self._topic_overrides})
            yield from self._read_overrides(topics, self._take)
        yield from self._read_broker(paths.DEFAULT_ENTITY)
        yield from self._read_broker(str(self._runtime.identity.broker_id))
        yield from self.users.load()
        yield from self.quotas.load()

    def refresh(self, topics: Iterable[str], and_brokers: bool) -> Steps[None]:
        """Read settings again before the news of a change has come."""
        yield from self._read_again(list(topics))
        if and_brokers:
            yield from self._read_broker(paths.DEFAULT_ENTITY)
            yield from self._read_broker(str(self._runtime.identity.broker_id))

    def read_topics(self, topics: Iterable[str]) -> Steps[None]:
        """Read the settings of topics before their logs are made: what was known of a name may be another
        topic's."""
        yield from self._read_overrides(list(topics), self._take_new)

    def _take_new(self, topic: str, found: dict[str, str] | None) -> None:
        self._set_topic(topic, self._readable(topic, found, is_new=True))

    def _read_again(self, topics: list[str]) -> Steps[None]:
        yield from self._read_overrides(topics, self._take_if_known)

    def _take_if_known(self, topic: str, found: dict[str, str] | None) -> None:
        """What is heard of a topic that was deleted meanwhile is not kept for the next one of its name."""
        if topic in self._topic_overrides or topic in self._metadata.topics:
            self._take(topic, found)

    def _take(self, topic: str, found: dict[str, str] | None) -> None:
        self._set_topic(topic, self._readable(topic, found))

    def _readable(self, topic: str, found: dict[str, str] | None, *, is_new: bool = False) -> dict[str, str]:
        """What was found, with what held before in place of what cannot be read."""
        is_known = not is_new and topic in self._topic_overrides
        before = self._topic_overrides[topic] if is_known else ALL_IS_KEPT
        if found is None:
            return before
        readable = dict(found)
        unreadable = unreadable_overrides(found)
        for name, why in unreadable.items():
            log.warning("a setting cannot be read entity=topics/%s reason=%s", topic, why)
            del readable[name]
            if name in before:
                readable[name] = before[name]
        if "cleanup.policy" in unreadable and not is_known:
            readable |= ALL_IS_KEPT  # a compacted topic, as it may be, has no use for retention
        return readable

    def _read_overrides(
        self, topics: list[str], take: Callable[[str, dict[str, str] | None], None]
    ) -> Steps[None]:
        """Each is taken as soon as it is there: what is heard later, of a change meanwhile, is newer."""

        def took(read: ReadOp, result: object) -> None:
            topic = read.path.rpartition("/")[2]
            take(topic, self._overrides_of(result, f"topics/{topic}"))

        for begin in range(0, len(topics), READS_AT_ONCE):
            some = topics[begin : begin + READS_AT_ONCE]
            reads = tuple(GetData(paths.config_entity("topics", topic)) for topic in some)
            yield from read_all(MultiRead(reads), took)

    def _read_broker(self, entity: str) -> Steps[None]:
        result = yield from read_until_shown(GetData(paths.config_entity("brokers", entity)))
        overrides = self._overrides_of(result, f"brokers/{entity}")
        is_default = entity == paths.DEFAULT_ENTITY
        before = self._default_overrides if is_default else self._own_overrides
        if overrides is None or overrides == before:
            return
        unreadable = unusable(overrides)
        for name, why in unreadable.items():
            log.warning("a setting is ignored entity=brokers/%s setting=%s reason=%s", entity, name, why)
        overrides |= {name: before[name] for name in unreadable if name in before}
        if is_default:
            self._default_overrides = overrides
        else:
            self._own_overrides = overrides
        self._rebuild()

    @staticmethod
    def _overrides_of(result: object, what: str) -> dict[str, str] | None:
        """None where they cannot be read."""
        if not isinstance(result, Data):
            return {}
        try:
            return decode_config(result.data).config
        except MalformedZnode as malformed:
            log.warning("settings cannot be read entity=%s reason=%s", what, malformed)
            return None

    def _set_topic(self, topic: str, overrides: dict[str, str]) -> None:
        before = self._topic_overrides.get(topic)
        self._topic_overrides[topic] = overrides
        if before != overrides:
            self._log_configs.pop(topic, None)
        if before is not None and before != overrides:
            config = self.log_config(topic)
            log.info("topic settings changed topic=%s overrides=%s", topic, overrides)
            for listener in self.listeners:
                listener.on_topic_config_changed(topic, config)

    def _rebuild(self) -> None:
        """What does not go together, whoever stored it, leaves everything as it is."""
        before = self._runtime.config
        values = effective_values(self.static.originals, self._default_overrides, self._own_overrides)
        broken = broken_requirements(values)
        if broken:
            log.error("broker settings cannot be applied reason=%s", "; ".join(broken))
            return
        self.values = values
        self._runtime.config = self._with_stores(with_values(self.static, values))
        if self._runtime.config == before:
            return
        self._log_configs.clear()
        if self._runtime.identity.is_registered:
            log.info("broker settings changed broker=%d", self._runtime.identity.broker_id)
        for listener in self.listeners:
            listener.on_broker_config_changed(before, self._runtime.config)

    def _with_stores(self, config: BrokerConfig) -> BrokerConfig:
        """The same with the stores that were named for single listeners while the broker runs."""
        listeners = config.listeners
        if not listeners.tls:
            return config
        own = {name: text for name, text in self._own_overrides.items() if name.startswith("listener.name.")}
        read = read_tls_listeners({**self.static.originals, **own}, listeners.listeners)
        if read.problems:
            log.error("stores of listeners cannot be changed reason=%s", "; ".join(read.problems))
            return replace(config, listeners=replace(listeners, tls=self._runtime.config.listeners.tls))
        return replace(config, listeners=replace(listeners, tls=read.listeners))

    # ---- changes

    def on_new_session(self) -> None:
        """Changes may have been missed: read everything again."""
        self._runtime.own.spawn(self.load())

    def _on_note(self, event: WatchEvent) -> None:
        if self._is_reading:
            self._must_read_again = True
            return
        self._is_reading = True
        self._runtime.own.spawn(self._follow_notes(), self._followed)

    def _followed(self, _: None) -> None:
        self._is_reading = False
        if self._must_read_again:
            self._must_read_again = False
            self._is_reading = True
            self._runtime.own.spawn(self._follow_notes(), self._followed)

    def _follow_notes(self) -> Steps[None]:
        notes = yield from persistently(GetChildren(paths.CONFIG_CHANGES, watch=True))
        if not isinstance(notes, Children):
            return
        for name in sorted(notes.names, key=paths.sequence_number):
            yield from self._follow(name)

    def _follow(self, name: str) -> Steps[None]:
        path = f"{paths.CONFIG_CHANGES}/{name}"
        number = paths.sequence_number(name)
        note = yield from persistently(GetData(path))
        if not isinstance(note, Data):
            return
        if number > self._last_note:
            self._last_note = number
            try:
                entity = decode_config_change(note.data)
            except MalformedZnode as malformed:
                log.warning("a note of changed settings cannot be read note=%s reason=%s", name, malformed)
                return
            yield from self._read_entity(entity)
        if note.stat.ctime_ms + NOTE_LIFE_MS < self._runtime.clock.wall_ms():
            yield from persistently(Delete(path, note.stat.version))

    def _read_entity(self, entity: str) -> Steps[None]:
        kind, _, name = entity.partition("/")
        if kind == "topics":
            yield from self._read_again([name])
        elif kind == "brokers" and name in (paths.DEFAULT_ENTITY, str(self._runtime.identity.broker_id)):
            yield from self._read_broker(name)
        elif kind in QUOTA_KINDS:
            if kind == "users" and "/" not in name:
                yield from self.users.read([name])
            yield from self.quotas.read([entity])
