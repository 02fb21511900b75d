"""What a follower decided, done to its partition's log."""

import logging

from ottla.broker.replicas.losses import LogCut, LossListener
from ottla.broker.replicas.partition import Partition
from ottla.broker.replicas.throttles import Throttles
from ottla.broker.runtime.runtime import Runtime
from ottla.model.ids import BrokerId
from ottla.records.validate import Refused
from ottla.replication.effects import FollowLeader, RestartAt, TruncateTo
from ottla.storage.disk.port import Buffer
from ottla.storage.log.outcomes import Appended

log = logging.getLogger(__name__)


class FollowerLogs:
    """Changes the logs of this broker's followers. Truncations are reported, so that losses are known."""

    def __init__(self, runtime: Runtime, throttles: Throttles, losses: LossListener) -> None:
        self._runtime = runtime
        self._throttles = throttles
        self._losses = losses

    def append(
        self, partition: Partition, leader: BrokerId, leader_epoch: int, records: Buffer
    ) -> Appended | Refused:
        """Write what the leader sent."""
        outcome = partition.log.append_as_follower(
            records, now_ms=self._runtime.clock.wall_ms(), leader_epoch=leader_epoch
        )
        if isinstance(outcome, Refused):
            log.warning(
                "fetched records refused partition=%s leader=%d reason=%s",
                partition.name,
                leader,
                outcome.message,
            )
            return outcome
        self._throttles.follower_got(partition, outcome.size)
        self._runtime.meters.replication_bytes_in += outcome.size
        return outcome

    def follow_leader(self, partition: Partition, effect: FollowLeader) -> None:
        """Take over the leader's high watermark and log start, and wake whoever waits for them."""
        partition_log = partition.log
        if effect.high_watermark != partition_log.high_watermark:
            partition_log.set_high_watermark(effect.high_watermark)
            partition.committed()
        if effect.log_start_offset > partition_log.log_start_offset:
            partition_log.raise_log_start_offset(effect.log_start_offset)
            partition.log_start_moved()

    def truncate(self, partition: Partition, leader: BrokerId, effect: TruncateTo) -> None:
        """Truncate what the leader does not have."""
        end_offset, high_watermark = partition.log.end_offset, partition.log.high_watermark
        if partition.log.truncate_to(effect.offset):
            self._tell_cut(partition, leader, effect.offset, end_offset, high_watermark)
            log.info(
                "log cut partition=%s offset=%d leader=%d reason=%s",
                partition.name,
                effect.offset,
                leader,
                effect.reason,
            )
            partition.tell_all_watchers()

    def restart(self, partition: Partition, leader: BrokerId, effect: RestartAt) -> None:
        """Drop the whole log, and begin where the leader's begins."""
        log.warning(
            "log restarts partition=%s offset=%d reason=%s", partition.name, effect.offset, effect.reason
        )
        end_offset, high_watermark = partition.log.end_offset, partition.log.high_watermark
        partition.log.truncate_fully_and_start_at(effect.offset)
        if effect.offset < end_offset:
            self._tell_cut(partition, leader, effect.offset, end_offset, high_watermark)
        partition.tell_all_watchers()

    def _tell_cut(
        self,
        partition: Partition,
        leader: BrokerId,
        start: int,
        end_offset: int,
        high_watermark: int,
    ) -> None:
        epoch = partition.leader_epoch
        self._losses.on_log_cut(
            LogCut(
                partition.name,
                self._runtime.identity.broker_id,
                leader,
                epoch,
                start,
                end_offset,
                high_watermark,
            )
        )
