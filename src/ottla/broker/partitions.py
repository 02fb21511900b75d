"""All partitions this broker hosts: their roles by the controller's word, their logs, their failures."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.broker.background import Background
from ottla.broker.batch_order import BatchOrder
from ottla.broker.decision_records import UncleanStart
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.fetchers import Fetchers
from ottla.broker.isr_sender import IsrSender
from ottla.broker.metadata_image import MetadataChange
from ottla.broker.outputs import Exit
from ottla.broker.partition import Partition
from ottla.broker.promises import InternalAppend
from ottla.broker.replica_mover import ReplicaMover
from ottla.broker.throttles import Throttles
from ottla.broker.topic_names import may_be_hosted
from ottla.broker.transaction_verifier import TransactionVerifier
from ottla.broker.zk_desk import persistently
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import ZERO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from ottla.model.partition_state import LeaderRecoveryState
from ottla.records.batch import read_header
from ottla.records.validate import Origin, Refused
from ottla.storage.log import Log
from ottla.wire.apis.leader_and_isr import LeaderAndIsrPartitionState
from ottla.zookeeper import paths
from ottla.zookeeper.codec_config import encode_log_dir_event
from ottla.zookeeper.ops import Create

if TYPE_CHECKING:
    from ottla.broker.clock import Clock
    from ottla.broker.node import Node
    from ottla.broker.waiting import Waiting
    from ottla.config.areas import BrokerConfig
    from ottla.config.log import LogConfig

log = logging.getLogger(__name__)

_NONE = ErrorCode.NONE
_STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
EPOCH_DURING_DELETE = -2
NO_LEADER_EPOCH = -1


class Assigned(NamedTuple):
    """One partition of a LeaderAndIsr request."""

    partition: TopicPartition
    topic_id: TopicId
    state: LeaderAndIsrPartitionState


@dataclass(slots=True)
class AssignmentDone:
    """What became of a LeaderAndIsr request."""

    answers: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    leads: int = 0
    follows: int = 0


class LeadershipListener(Protocol):
    """Who must know which partitions are led here: the coordinators."""

    def on_leader(self, partition: TopicPartition, leader_epoch: int) -> None: ...

    def on_not_leader(self, partition: TopicPartition) -> None: ...


class Partitions:
    """Kafka's replica manager: hosts partitions, obeys the controller, answers for failing disks."""

    __slots__ = (
        "_deleted",
        "_node",
        "_offline",
        "_topics",
        "background",
        "batch_order",
        "clock",
        "fetchers",
        "isr_sender",
        "listeners",
        "live",
        "meters",
        "mover",
        "sessions",
        "throttles",
        "verifier",
        "waiting",
        "wished_directories",
    )

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.clock: Clock = node.clock
        self.meters = node.meters
        self.waiting: Waiting = node.waiting
        self._topics: dict[str, dict[int, Partition]] = {}
        self._offline: set[TopicPartition] = set()
        self._deleted: set[TopicPartition] = set()
        """Surely gone, though a disk that failed cannot be asked."""
        self.live: frozenset[BrokerId] = frozenset()
        """The brokers that the metadata call alive."""
        self.listeners: list[LeadershipListener] = []
        self.wished_directories: dict[TopicPartition, str] = {}
        """Where replicas that are not here yet shall be made."""
        self.verifier = TransactionVerifier(node)
        self.isr_sender = IsrSender(node)
        self.fetchers = Fetchers(node)
        self.throttles = Throttles(node)
        self.background = Background(node)
        self.mover = ReplicaMover(node)
        self.batch_order = BatchOrder(node.clock)
        slots = node.config.replication.max_incremental_fetch_session_cache_slots
        self.sessions = FetchSessions(slots, node.random)

    # --- questions --------------------------------------------------------------------------------------

    @property
    def broker_id(self) -> BrokerId:
        return self._node.broker_id

    @property
    def lag_time_max_ms(self) -> int:
        return self._node.config.replication.replica_lag_time_max_ms

    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

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
        """The logs are open: begin what is done from time to time."""
        self.throttles.set_limits(self._node.config.replication)
        self.background.start()
        if self._node.log_dirs.offline:
            self._report_failure(", ".join(self._node.log_dirs.offline))

    def on_metadata_changed(self, change: MetadataChange) -> None:
        """An UpdateMetadata was applied."""
        if change.brokers_changed:
            self.live = frozenset(self._node.metadata.brokers)
            now_ms = self.now_ms()
            for partition in self.all():
                partition.brokers_changed(now_ms)
        if change.controller_changed:
            self.isr_sender.controller_changed()
        for name in change.updated:
            self._leave_if_removed(name)
        for name in change.deleted:
            deleted = self.find(*name)
            if deleted is not None:
                deleted.forget_watchers()

    def _leave_if_removed(self, name: TopicPartition) -> None:
        """A partition that moved on without this broker while it was away: nobody tells it to stop.

        Its log stays; what is not known to the cluster as a replica is deleted by orders alone.
        """
        partition, info = self.find(*name), self._node.metadata.partition(name)
        if partition is None or info is None or self.broker_id in info.replicas:
            return
        if info.leader_epoch > partition.leader_epoch:
            log.info("no replica any more partition=%s epoch=%d", name, info.leader_epoch)
            self._drop(partition)

    def on_topic_config_changed(self, topic: str, config: "LogConfig") -> None:
        """The topic's logs go by its new settings from now on."""
        for partition in self.of_topic(topic):
            partition.log.config = config
            leader = partition.leader
            if leader is not None and leader.min_insync_replicas != config.min_insync_replicas:
                partition.perform(
                    leader.settings_changed(config.min_insync_replicas, self.now_ms(), self.live)
                )

    def on_broker_config_changed(self, before: "BrokerConfig", after: "BrokerConfig") -> None:
        """The broker's own settings changed, and with them the defaults of its topics."""
        self.throttles.set_limits(after.replication)
        if before.log != after.log:
            for topic in list(self._topics):
                self.on_topic_config_changed(topic, self._node.configs.log_config(topic))
        if before.replication.num_replica_fetchers != after.replication.num_replica_fetchers:
            self.fetchers.spread_anew()

    def stop(self) -> None:
        """The broker leaves: no fetching, no leading any more."""
        self.background.stop()
        self.mover.stop()
        self.fetchers.stop()
        self.isr_sender.stop()
        for partition in self.all():
            partition.stop()
        self.waiting.end_turn()

    # --- LeaderAndIsr -----------------------------------------------------------------------------------

    def assign(self, assigned: Iterable[Assigned], done: AssignmentDone) -> Iterator[None]:
        """Lead and follow as the controller says; what a fence stops is answered with its code.

        Yields wherever others may have their turn. The fetchers begin when all is assigned.
        """
        to_lead: list[Assigned] = []
        to_follow: list[Assigned] = []
        for each in assigned:
            code = self._judge(each)
            done.answers[each.partition] = code or _NONE
            if code is None:
                (to_lead if each.state.leader == self.broker_id else to_follow).append(each)
        done.leads, done.follows = len(to_lead), len(to_follow)
        yield
        with self.fetchers.held_back():
            for each in to_lead:
                done.answers[each.partition] = self._lead(each)
                yield
            for each in to_follow:
                done.answers[each.partition] = self._follow(each)
                yield
        self.fetchers.close_idle()

    def _judge(self, assigned: Assigned) -> ErrorCode | None:
        """The fences of one partition; None: it is to be obeyed."""
        name, topic_id, state = assigned
        if name in self._offline:
            return _STORAGE_ERROR
        partition = self.find(*name)
        partition_log = partition.log if partition is not None else self._node.log_dirs.get(name)
        own_id = partition_log.topic_id if partition_log is not None else None
        if topic_id != ZERO_TOPIC_ID and own_id not in (None, ZERO_TOPIC_ID, topic_id):
            log.warning("topic id differs partition=%s", name)
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition_log is None and not may_be_hosted(name):
            log.warning("no log can have this name partition=%s", name)
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        own_epoch = partition.leader_epoch if partition is not None else NO_LEADER_EPOCH
        if state.leader_epoch > own_epoch:
            is_replica = self.broker_id in state.replicas
            return None if is_replica else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._judge_same_epoch(assigned, partition, own_epoch)

    def _judge_same_epoch(self, assigned: Assigned, partition: Partition | None, own_epoch: int) -> ErrorCode:
        """Only a topic's id may be news in an epoch that is known already."""
        topic_id = assigned.topic_id
        if partition is None or assigned.state.leader_epoch < own_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        own_log = partition.log
        if own_log.topic_id is None and topic_id != ZERO_TOPIC_ID:
            return self._with_storage(lambda: partition.assign_topic_id(topic_id))
        if own_log.topic_id is not None and topic_id == ZERO_TOPIC_ID and partition.follower is not None:
            return _NONE
        return ErrorCode.STALE_CONTROLLER_EPOCH

    def _lead(self, assigned: Assigned) -> ErrorCode:
        partition = self._host(assigned)
        if isinstance(partition, ErrorCode):
            return partition
        own_log = partition.log
        if (code := self._with_storage(lambda: own_log.epochs)) is not _NONE:
            return code  # a leader notes its epoch there, and they are read when first asked for
        heard = _heard_high_watermark(partition)
        was_leader = partition.leader is not None
        missed_another = assigned.state.leader_epoch > partition.leader_epoch + 1
        if partition.become_leader(assigned.state):
            self.fetchers.unfollow(partition)
            is_unclean = assigned.state.leader_recovery_state == LeaderRecoveryState.RECOVERING
            if is_unclean and (missed_another or not was_leader):
                end = own_log.end_offset
                # One that had been replaced and did not know it may have written on, beside its successor.
                kept = min(end, heard) if was_leader else end
                start = UncleanStart(partition.name, self.broker_id, partition.leader_epoch, end, kept, heard)
                self._node.controller.on_unclean_start(start)
            log.debug(
                "leading partition=%s epoch=%d isr=%s start=%d",
                partition.name,
                partition.leader_epoch,
                ",".join(map(str, assigned.state.isr)),
                partition.log.end_offset,
            )
            for listener in self.listeners:
                listener.on_leader(partition.name, partition.leader_epoch)
        return _NONE

    def _follow(self, assigned: Assigned) -> ErrorCode:
        partition = self._host(assigned)
        if isinstance(partition, ErrorCode):
            return partition
        if assigned.state.leader not in self.live:
            log.debug("leader unknown partition=%s leader=%d", partition.name, assigned.state.leader)
            return _NONE
        if partition.become_follower(assigned.state):
            log.debug(
                "following partition=%s epoch=%d leader=%d from=%d",
                partition.name,
                partition.leader_epoch,
                partition.leader_id,
                partition.log.end_offset,
            )
            for listener in self.listeners:
                listener.on_not_leader(partition.name)
            self.fetchers.follow(partition)
        return _NONE

    def _host(self, assigned: Assigned) -> Partition | ErrorCode:
        """The partition, with its log opened or made."""
        name, topic_id, state = assigned
        partition = self.find(*name)
        if partition is not None:
            own_log = partition.log
            if topic_id != ZERO_TOPIC_ID and own_log.topic_id is None:
                code = self._with_storage(lambda: own_log.assign_topic_id(topic_id))
                return partition if code is _NONE else code
            return partition
        log_dirs = self._node.log_dirs
        if log_dirs.get(name) is None and not state.is_new and log_dirs.offline:
            # It may lie on the disk that failed: making it anew would pass for a replica that lost nothing.
            self._offline.add(name)
            return _STORAGE_ERROR
        try:
            partition_log = log_dirs.create(
                name,
                self._node.configs.log_config(name.topic),
                topic_id=topic_id if topic_id != ZERO_TOPIC_ID else None,
                now_ms=self.clock.wall_ms(),
                directory=self._wished_directory(name),
            )
            if partition_log.topic_id is None and topic_id != ZERO_TOPIC_ID:
                partition_log.assign_topic_id(topic_id)
        except LogDirectoryFailed as failed:
            self._offline.add(name)
            self.directory_failed(failed)
            return _STORAGE_ERROR
        partition_log.config = self._node.configs.log_config(name.topic)
        partition = Partition(self, name, partition_log)
        self._deleted.discard(name)
        self._topics.setdefault(name.topic, {})[name.partition] = partition
        code = self._with_storage(lambda: self.mover.resume(partition))
        return partition if code is _NONE or name not in self._offline else code

    def _wished_directory(self, name: TopicPartition) -> str | None:
        wished = self.wished_directories.pop(name, None)
        return wished if wished in self._node.log_dirs.live_paths else None

    # --- StopReplica ------------------------------------------------------------------------------------

    def stop_replica(self, name: TopicPartition, leader_epoch: int, *, delete: bool) -> ErrorCode:
        """Follow no more; delete the log if so told, hosted or not."""
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
            self.fetchers.unfollow(partition)
            if delete:
                self._drop(partition)
        if not delete:
            return _NONE
        log_dirs = self._node.log_dirs
        if log_dirs.get(name) is None and log_dirs.offline and name not in self._deleted:
            return _STORAGE_ERROR  # it may lie on the disk that failed, and come back with it
        token = f"{self._node.random.getrandbits(128):032x}"
        log.debug("deleting partition=%s", name)
        code = self._with_storage(lambda: log_dirs.delete(name, token=token))
        if code is _NONE and log_dirs.offline:
            self._deleted.add(name)
        return code

    def _drop(self, partition: Partition) -> None:
        """The partition is hosted here no more."""
        self.fetchers.unfollow(partition)
        of_topic = self._topics.get(partition.name.topic, {})
        of_topic.pop(partition.name.partition, None)
        if not of_topic:
            self._topics.pop(partition.name.topic, None)
        partition.stop()
        for listener in self.listeners:
            listener.on_not_leader(partition.name)

    # --- failing disks ----------------------------------------------------------------------------------

    def _with_storage(self, work: Callable[[], object]) -> ErrorCode:
        try:
            work()
        except LogDirectoryFailed as failed:
            self.directory_failed(failed)
            return _STORAGE_ERROR
        return _NONE

    def directory_failed(self, failed: LogDirectoryFailed) -> None:
        """Take the directory's partitions offline; the others go on. Without any left, so does the broker."""
        gone = self._node.log_dirs.take_offline(failed.directory, failed.reason)
        hosted = [partition for partition in self.all() if partition.log.directory == failed.directory]
        for name in gone:
            self._offline.add(name)
        for partition in hosted:
            self._offline.add(partition.name)
            self._drop(partition)
        if not gone and not hosted and self._node.log_dirs.live_paths:
            return
        log.error(
            "log directory failed directory=%s reason=%s partitions=%d",
            failed.directory,
            failed.reason,
            len(hosted),
        )
        self._report_failure(failed.directory)

    def _report_failure(self, what: str) -> None:
        if not self._node.log_dirs.live_paths:
            self._node.outputs.append(Exit(1, f"no log directory is left: {what} failed"))
            return
        note = encode_log_dir_event(self.broker_id)
        self._node.zk.run(persistently(Create(paths.LOG_DIR_EVENT_PREFIX, note, sequential=True)))

    # --- the broker's own appends -----------------------------------------------------------------------

    def append_internal(
        self,
        name: TopicPartition,
        batch: bytearray,
        acks: int,
        timeout_ms: int,
        then: Callable[[ErrorCode], None],
    ) -> None:
        """Append a coordinator's batch; ``then`` hears when it is committed as far as ``acks`` asks."""
        partition = self.find(*name)
        if partition is None:
            then(self.why_missing(*name))
            return
        outcome = partition.append(memoryview(batch), read_header(batch), acks, origin=Origin.COORDINATOR)
        if isinstance(outcome, Refused):
            then(ErrorCode(outcome.error))
            return
        waits = acks == -1 and partition.leader is not None
        if not waits or partition.log.high_watermark > outcome.last_offset:
            then(_NONE)
            return
        awaited = InternalAppend(self.waiting, outcome.last_offset + 1, then)
        partition.await_commit(awaited)
        self.waiting.deadlines.add(awaited, timeout_ms)


def _heard_high_watermark(partition: Partition) -> int:
    """How far the leader before was known to have committed: a slow follower hears more than it has."""
    follower = partition.follower
    heard = None if follower is None else follower.leader_high_watermark
    return partition.log.high_watermark if heard is None else max(heard, partition.log.high_watermark)
