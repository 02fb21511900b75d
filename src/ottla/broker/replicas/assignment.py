"""LeaderAndIsr: which partitions the controller assigned to this broker, as leader or as follower."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.broker.replicas.directory_move import DirectoryMoves
from ottla.broker.replicas.following.fetchers import Fetchers
from ottla.broker.replicas.hosted import NO_LEADER_EPOCH, Partitions
from ottla.broker.replicas.losses import LossListener, UncleanStart
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import BREATH, Steps
from ottla.config.log import LogConfig
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import ZERO_TOPIC_ID, BrokerId, TopicId, TopicPartition
from ottla.model.partition_state import LeaderRecoveryState
from ottla.model.topic_names import may_be_hosted
from ottla.storage.directories.log_dirs import LogDirs
from ottla.wire.apis.leader_and_isr import LeaderAndIsrPartitionState

log = logging.getLogger(__name__)

_NONE = ErrorCode.NONE
_STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


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


class Assignment:
    """Checks each partition of a LeaderAndIsr request, hosts it, and lets it lead or follow."""

    def __init__(
        self,
        runtime: Runtime,
        log_dirs: LogDirs,
        partitions: Partitions,
        fetchers: Fetchers,
        directory_moves: DirectoryMoves,
        log_config: Callable[[str], LogConfig],
        losses: LossListener,
    ) -> None:
        """``log_config`` gives the settings of a topic's logs."""
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._fetchers = fetchers
        self._directory_moves = directory_moves
        self._log_config = log_config
        self.losses = losses

    @property
    def _broker_id(self) -> BrokerId:
        return self._runtime.identity.broker_id

    def assign(self, assigned: Iterable[Assigned], done: AssignmentDone) -> Steps[None]:
        """Lead and follow as the controller says; what a fence stops is answered with its error code.

        Yields wherever others may have their turn. The fetchers begin when all is assigned.
        """
        to_lead: list[Assigned] = []
        to_follow: list[Assigned] = []
        for each in assigned:
            code = self._judge(each)
            done.answers[each.partition] = code or _NONE
            if code is None:
                (to_lead if each.state.leader == self._broker_id else to_follow).append(each)
        done.leads, done.follows = len(to_lead), len(to_follow)
        yield BREATH
        with self._fetchers.held_back():
            for each in to_lead:
                done.answers[each.partition] = self._lead(each)
                yield BREATH
            for each in to_follow:
                done.answers[each.partition] = self._follow(each)
                yield BREATH
        self._fetchers.close_idle()

    def _judge(self, assigned: Assigned) -> ErrorCode | None:
        """The error with which a fence stops this partition, or None if the broker must obey."""
        name, topic_id, state = assigned
        if self._partitions.is_offline(*name):
            return _STORAGE_ERROR
        partition = self._partitions.find(*name)
        partition_log = partition.log if partition is not None else self._log_dirs.get(name)
        own_id = partition_log.topic_id if partition_log is not None else None
        if topic_id != ZERO_TOPIC_ID and own_id not in (None, ZERO_TOPIC_ID, topic_id):
            log.warning("topic id differs partition=%s", name)
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition_log is None and not may_be_hosted(name):
            log.warning("no log can have this name partition=%s", name)
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        own_epoch = partition.leader_epoch if partition is not None else NO_LEADER_EPOCH
        if state.leader_epoch > own_epoch:
            is_replica = self._broker_id in state.replicas
            return None if is_replica else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._judge_same_epoch(assigned, partition, own_epoch)

    def _judge_same_epoch(self, assigned: Assigned, partition: Partition | None, own_epoch: int) -> ErrorCode:
        """In an epoch that is known already, only the topic id can be new."""
        topic_id = assigned.topic_id
        if partition is None or assigned.state.leader_epoch < own_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        own_log = partition.log
        if own_log.topic_id is None and topic_id != ZERO_TOPIC_ID:
            return self._partitions.with_storage(lambda: self._assign_topic_id(partition, topic_id))
        if own_log.topic_id is not None and topic_id == ZERO_TOPIC_ID and partition.follower is not None:
            return _NONE
        return ErrorCode.STALE_CONTROLLER_EPOCH

    def _assign_topic_id(self, partition: Partition, topic_id: TopicId) -> None:
        """From now on a follower fetches it by its topic id."""
        partition.assign_topic_id(topic_id)
        if partition.follower is not None:
            self._fetchers.follow_anew(partition)

    def _lead(self, assigned: Assigned) -> ErrorCode:
        partition = self._host(assigned)
        if isinstance(partition, ErrorCode):
            return partition
        own_log = partition.log
        if (code := self._partitions.with_storage(lambda: own_log.epochs)) is not _NONE:
            return code  # a leader notes its epoch there, and they are read when first asked for
        heard = _heard_high_watermark(partition)
        was_leader = partition.leader is not None
        missed_another = assigned.state.leader_epoch > partition.leader_epoch + 1
        if partition.become_leader(assigned.state):
            self._fetchers.unfollow(partition)
            is_unclean = assigned.state.leader_recovery_state == LeaderRecoveryState.RECOVERING
            if is_unclean and (missed_another or not was_leader):
                end = own_log.end_offset
                # One that had been replaced and did not know it may have written on, beside its successor.
                kept = min(end, heard) if was_leader else end
                start = UncleanStart(
                    partition.name, self._broker_id, partition.leader_epoch, end, kept, heard
                )
                self.losses.on_unclean_start(start)
            log.debug(
                "leading partition=%s epoch=%d isr=%s start=%d",
                partition.name,
                partition.leader_epoch,
                ",".join(map(str, assigned.state.isr)),
                partition.log.end_offset,
            )
            for listener in self._partitions.listeners:
                listener.on_leader(partition.name, partition.leader_epoch)
        return _NONE

    def _follow(self, assigned: Assigned) -> ErrorCode:
        partition = self._host(assigned)
        if isinstance(partition, ErrorCode):
            return partition
        if assigned.state.leader not in self._partitions.live:
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
            for listener in self._partitions.listeners:
                listener.on_not_leader(partition.name)
            self._fetchers.follow(partition)
        return _NONE

    def _host(self, assigned: Assigned) -> Partition | ErrorCode:
        """The partition, with its log opened or made."""
        name, topic_id, state = assigned
        partition = self._partitions.find(*name)
        if partition is not None:
            own_log = partition.log
            if topic_id != ZERO_TOPIC_ID and own_log.topic_id is None:
                code = self._partitions.with_storage(lambda: own_log.assign_topic_id(topic_id))
                return partition if code is _NONE else code
            return partition
        log_dirs = self._log_dirs
        if log_dirs.get(name) is None and not state.is_new and log_dirs.offline:
            # It may lie on the disk that failed: making it anew would pass for a replica that lost nothing.
            self._partitions.mark_offline(name)
            return _STORAGE_ERROR
        try:
            partition_log = log_dirs.create(
                name,
                self._log_config(name.topic),
                topic_id=topic_id if topic_id != ZERO_TOPIC_ID else None,
                now_ms=self._runtime.clock.wall_ms(),
                directory=self._directory_moves.take_wish(name),
            )
            if partition_log.topic_id is None and topic_id != ZERO_TOPIC_ID:
                partition_log.assign_topic_id(topic_id)
        except LogDirectoryFailed as failed:
            self._partitions.mark_offline(name)
            self._partitions.directory_failed(failed)
            return _STORAGE_ERROR
        partition_log.config = self._log_config(name.topic)
        partition = self._partitions.add(name, partition_log)
        code = self._partitions.with_storage(lambda: self._directory_moves.resume(partition))
        return partition if code is _NONE or not self._partitions.is_offline(*name) else code


def _heard_high_watermark(partition: Partition) -> int:
    """The last leader's high watermark as heard here, which may lie beyond what this follower has fetched."""
    follower = partition.follower
    heard = None if follower is None else follower.leader_high_watermark
    return partition.log.high_watermark if heard is None else max(heard, partition.log.high_watermark)
