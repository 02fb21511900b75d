"""All partitions this broker hosts, and what becomes of them when a log directory fails."""

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from ottla.broker.metadata.image import MetadataChange, MetadataImage
from ottla.broker.outputs import Exit
from ottla.broker.replicas.context import PartitionContext
from ottla.broker.replicas.following.fetchers import Fetchers
from ottla.broker.replicas.internal_append import InternalAppend
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import persistently
from ottla.config.areas import BrokerConfig
from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import BrokerId, TopicPartition
from ottla.records.batch import read_header
from ottla.records.validate import Origin, Refused
from ottla.storage.directories.log_dirs import LogDirs
from ottla.storage.log.log import Log
from ottla.znodes import paths
from ottla.znodes.codec_config import encode_log_dir_event
from ottla.zookeeper.ops import Create

log = logging.getLogger(__name__)

_NONE = ErrorCode.NONE
_STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
EPOCH_DURING_DELETE = -2
NO_LEADER_EPOCH = -1


class LeadershipListener(Protocol):
    """Hears which partitions this broker leads: a coordinator."""

    def on_leader(self, partition: TopicPartition, leader_epoch: int) -> None: ...

    def on_not_leader(self, partition: TopicPartition) -> None: ...


class Partitions:
    """Kafka's replica manager: hosts partitions, obeys the controller, answers for failing disks."""

    def __init__(
        self,
        runtime: Runtime,
        context: PartitionContext,
        log_dirs: LogDirs,
        fetchers: Fetchers,
        metadata: MetadataImage,
        log_config: Callable[[str], LogConfig],
    ) -> None:
        """``log_config`` gives the settings of a topic's logs."""
        self._runtime = runtime
        self._context = context
        self._log_dirs = log_dirs
        self._fetchers = fetchers
        self._metadata = metadata
        self._log_config = log_config
        self._topics: dict[str, dict[int, Partition]] = {}
        self._offline: set[TopicPartition] = set()
        self._deleted: set[TopicPartition] = set()
        """Surely gone, though a disk that failed cannot be asked."""
        self.listeners: list[LeadershipListener] = []
        context.directory_failed = self.directory_failed

    # --- questions --------------------------------------------------------------------------------------

    @property
    def live(self) -> frozenset[BrokerId]:
        """The brokers that are alive according to the metadata."""
        return self._context.live

    def find(self, topic: str, index: int) -> Partition | None:
        """The hosted partition; None when it is not here, or its directory failed."""
        of_topic = self._topics.get(topic)
        return of_topic.get(index) if of_topic is not None else None

    def is_offline(self, topic: str, index: int) -> bool:
        """Was it here, in a log directory that failed?"""
        return (topic, index) in self._offline

    @property
    def offline_count(self) -> int:
        return len(self._offline)

    def why_missing(self, topic: str, index: int) -> ErrorCode:
        """What to answer about a partition that ``find`` does not find, but the metadata know."""
        return _STORAGE_ERROR if self.is_offline(topic, index) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def all(self) -> Iterator[Partition]:
        """Every hosted partition."""
        for of_topic in self._topics.values():
            yield from of_topic.values()

    def of_topic(self, topic: str) -> list[Partition]:
        return list(self._topics.get(topic, {}).values())

    def log(self, partition: TopicPartition) -> Log | None:
        """A hosted partition's log."""
        found = self.find(*partition)
        return found.log if found is not None else None

    # --- the node's hooks -------------------------------------------------------------------------------

    def start(self) -> None:
        """The logs are open: tell the controller of directories that failed."""
        if self._log_dirs.offline:
            self._report_failure(", ".join(self._log_dirs.offline))

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """An UpdateMetadata was applied."""
        if change.brokers_changed:
            self._context.live = frozenset(self._metadata.brokers)
            now_ms = self._context.clock.monotonic_ms()
            for partition in self.all():
                partition.brokers_changed(now_ms)
        if change.controller_changed:
            self._context.isr_proposals.controller_changed()
        for name in change.updated:
            self._leave_if_removed(name)
        for name in change.deleted:
            deleted = self.find(*name)
            if deleted is not None:
                deleted.forget_watchers()

    def _leave_if_removed(self, name: TopicPartition) -> None:
        """Stop a replica that was moved away while this broker was gone: no StopReplica comes for it.

        Its log stays: only StopReplica deletes logs.
        """
        partition, info = self.find(*name), self._metadata.partition(name)
        if partition is None or info is None or self._runtime.identity.broker_id in info.replicas:
            return
        if info.leader_epoch > partition.leader_epoch:
            log.info("no replica any more partition=%s epoch=%d", name, info.leader_epoch)
            self._drop(partition)

    def on_topic_config_changed(self, topic: str, config: LogConfig) -> None:
        """Apply the topic's new settings to its logs."""
        for partition in self.of_topic(topic):
            partition.log.config = config
            leader = partition.leader
            if leader is not None and leader.min_insync_replicas != config.min_insync_replicas:
                now_ms = self._context.clock.monotonic_ms()
                partition.perform(leader.settings_changed(config.min_insync_replicas, now_ms, self.live))

    def on_broker_config_changed(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """The broker's own settings changed, and with them the defaults of its topics."""
        self._fetchers.on_broker_config_changed(before, after)
        if before.log != after.log:
            for topic in list(self._topics):
                self.on_topic_config_changed(topic, self._log_config(topic))

    def stop(self) -> None:
        """The broker stops: end all leading and following."""
        self._fetchers.stop()
        self._context.isr_proposals.stop()
        for partition in self.all():
            partition.stop()
        self._context.waiting.end_turn()

    def add(self, name: TopicPartition, partition_log: Log) -> Partition:
        """Host this partition from now on."""
        self._deleted.discard(name)
        partition = Partition(self._context, name, partition_log)
        self._topics.setdefault(name.topic, {})[name.partition] = partition
        return partition

    def mark_offline(self, name: TopicPartition) -> None:
        """It cannot be hosted: its directory failed."""
        self._offline.add(name)

    # --- StopReplica ------------------------------------------------------------------------------------

    def stop_replica(self, name: TopicPartition, leader_epoch: int, *, delete: bool) -> ErrorCode:
        """Stop the replica; delete its log if told so, hosted or not."""
        if name in self._offline:
            return _STORAGE_ERROR
        partition = self.find(*name)
        if partition is not None:
            is_fenced = (
                leader_epoch not in (EPOCH_DURING_DELETE, NO_LEADER_EPOCH)
                and leader_epoch < partition.leader_epoch
            )
            if is_fenced:
                return ErrorCode.FENCED_LEADER_EPOCH
            self._fetchers.unfollow(partition)
            if delete:
                self._drop(partition)
        if not delete:
            return _NONE
        log_dirs = self._log_dirs
        if log_dirs.get(name) is None and log_dirs.offline and name not in self._deleted:
            return _STORAGE_ERROR  # it may lie on the disk that failed, and come back with it
        token = f"{self._runtime.random.getrandbits(128):032x}"
        log.debug("deleting partition=%s", name)
        code = self.with_storage(lambda: log_dirs.delete(name, token=token))
        if code is _NONE and log_dirs.offline:
            self._deleted.add(name)
        return code

    def _drop(self, partition: Partition) -> None:
        """The partition is hosted here no more."""
        self._fetchers.unfollow(partition)
        of_topic = self._topics.get(partition.name.topic, {})
        of_topic.pop(partition.name.partition, None)
        if not of_topic:
            self._topics.pop(partition.name.topic, None)
        partition.stop()
        for listener in self.listeners:
            listener.on_not_leader(partition.name)

    # --- failing disks ----------------------------------------------------------------------------------

    def with_storage(self, work: Callable[[], object]) -> ErrorCode:
        """Do this; if the disk fails, take its log directory offline."""
        try:
            work()
        except LogDirectoryFailed as failed:
            self.directory_failed(failed)
            return _STORAGE_ERROR
        return _NONE

    def directory_failed(self, failed: LogDirectoryFailed) -> None:
        """Take the directory's partitions offline; the others go on. When none is left the broker exits."""
        gone = self._log_dirs.take_offline(failed.directory, failed.reason)
        hosted = [partition for partition in self.all() if partition.log.directory == failed.directory]
        for name in gone:
            self._offline.add(name)
        for partition in hosted:
            self._offline.add(partition.name)
            self._drop(partition)
        if not gone and not hosted and self._log_dirs.live_paths:
            return
        log.error(
            "log directory failed directory=%s reason=%s partitions=%d",
            failed.directory,
            failed.reason,
            len(hosted),
        )
        self._report_failure(failed.directory)

    def _report_failure(self, what: str) -> None:
        if not self._log_dirs.live_paths:
            self._runtime.outputs.append(Exit(1, f"no log directory is left: {what} failed"))
            return
        note = encode_log_dir_event(self._runtime.identity.broker_id)
        self._runtime.own.spawn(persistently(Create(paths.LOG_DIR_EVENT_PREFIX, note, sequential=True)))

    # --- the broker's own appends -----------------------------------------------------------------------

    def append_internal(
        self,
        name: TopicPartition,
        batch: bytearray,
        acks: int,
        timeout_ms: int,
        then: Callable[[ErrorCode], None],
        *,
        verification: int | None = None,
    ) -> None:
        """Append a coordinator's batch; ``then`` hears when it is committed as far as ``acks`` asks."""
        partition = self.find(*name)
        if partition is None:
            then(self.why_missing(*name))
            return
        outcome = partition.append(
            memoryview(batch),
            read_header(batch),
            acks,
            origin=Origin.COORDINATOR,
            verification=verification,
            must_be_verified=verification is not None,
        )
        if isinstance(outcome, Refused):
            then(ErrorCode(outcome.error))
            return
        waits = acks == -1 and partition.leader is not None
        if not waits or partition.log.high_watermark > outcome.last_offset:
            then(_NONE)
            return
        waiting = self._context.waiting
        awaited = InternalAppend(waiting, outcome.last_offset + 1, then)
        partition.await_commit(awaited)
        waiting.deadlines.add(awaited, timeout_ms)
