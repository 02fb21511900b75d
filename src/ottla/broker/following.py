"""What a follower decided, done to its partition's log. Cuts are told: losses shall be accounted for."""

import logging
from typing import TYPE_CHECKING

from ottla.broker.decision_records import LogCut
from ottla.model.ids import BrokerId
from ottla.records.validate import Refused
from ottla.replication.effects import FollowLeader, RestartAt, TruncateTo
from ottla.storage.disk import Buffer
from ottla.storage.outcomes import Appended

if TYPE_CHECKING:
    from ottla.broker.node import Node
    from ottla.broker.partition import Partition

log = logging.getLogger(__name__)


def append(
    node: "Node", partition: "Partition", leader: BrokerId, leader_epoch: int, records: Buffer
) -> Appended | Refused:
    """Write what the leader sent."""
    outcome = partition.log.append_as_follower(
        records, now_ms=node.clock.wall_ms(), leader_epoch=leader_epoch
    )
    if isinstance(outcome, Refused):
        log.warning(
            "fetched records refused partition=%s leader=%d reason=%s",
            partition.name,
            leader,
            outcome.message,
        )
        return outcome
    partition.host.throttles.follower_got(partition, outcome.size)
    node.meters.replication_bytes_in += outcome.size
    return outcome


def follow_leader(partition: "Partition", effect: FollowLeader) -> None:
    """Take over the leader's high watermark and log start; whoever waits for them hears so."""
    partition_log = partition.log
    if effect.high_watermark != partition_log.high_watermark:
        partition_log.set_high_watermark(effect.high_watermark)
        partition.committed()
    if effect.log_start_offset > partition_log.log_start_offset:
        partition_log.raise_log_start_offset(effect.log_start_offset)
        partition.log_start_moved()


def truncate(node: "Node", partition: "Partition", leader: BrokerId, effect: TruncateTo) -> None:
    """Cut the tail that is not the leader's."""
    end_offset, high_watermark = partition.log.end_offset, partition.log.high_watermark
    if partition.log.truncate_to(effect.offset):
        _tell_cut(node, partition, leader, effect.offset, end_offset, high_watermark)
        log.info(
            "log cut partition=%s offset=%d leader=%d reason=%s",
            partition.name,
            effect.offset,
            leader,
            effect.reason,
        )
        partition.tell_all_watchers()


def restart(node: "Node", partition: "Partition", leader: BrokerId, effect: RestartAt) -> None:
    """Drop the whole log, and begin where the leader's begins."""
    log.warning("log restarts partition=%s offset=%d reason=%s", partition.name, effect.offset, effect.reason)
    end_offset, high_watermark = partition.log.end_offset, partition.log.high_watermark
    partition.log.truncate_fully_and_start_at(effect.offset)
    if effect.offset < end_offset:
        _tell_cut(node, partition, leader, effect.offset, end_offset, high_watermark)
    partition.tell_all_watchers()


def _tell_cut(
    node: "Node",
    partition: "Partition",
    leader: BrokerId,
    start: int,
    end_offset: int,
    high_watermark: int,
) -> None:
    epoch = partition.leader_epoch
    node.controller.on_log_cut(
        LogCut(partition.name, node.broker_id, leader, epoch, start, end_offset, high_watermark)
    )
