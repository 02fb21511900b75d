"""Builders for the replication tests: a leader, a follower, a log that is only its offsets."""

from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicId
from ottla.replication.events import Elected, EpochEndOffset, PartitionFetched
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import PartitionLeader
from support.bench.toy_epochs import ToyEpochs

LEADER, FAST, SLOW = BrokerId(1), BrokerId(2), BrokerId(3)
OUTSIDER = BrokerId(9)
EVERYONE = frozenset({LEADER, FAST, SLOW})
LAG_TIME_MAX_MS = 30_000
TOPIC_ID = TopicId(bytes(range(16)))


def an_election(
    *,
    epoch: int = 5,
    partition_epoch: int = 0,
    isr: tuple[BrokerId, ...] = (LEADER, FAST, SLOW),
    replicas: tuple[BrokerId, ...] = (LEADER, FAST, SLOW),
    end_offset: int = 0,
    high_watermark: int = 0,
    adding: tuple[BrokerId, ...] = (),
) -> Elected:
    return Elected(
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=partition_epoch,
        isr=isr,
        replicas=replicas,
        end_offset=Offset(end_offset),
        high_watermark=Offset(high_watermark),
        adding=adding,
    )


def a_leader(
    *,
    isr: tuple[BrokerId, ...] = (LEADER, FAST, SLOW),
    replicas: tuple[BrokerId, ...] = (LEADER, FAST, SLOW),
    end_offset: int = 0,
    high_watermark: int = 0,
    min_insync_replicas: int = 1,
    now_ms: int = 0,
) -> PartitionLeader:
    leader = PartitionLeader(LEADER, min_insync_replicas=min_insync_replicas, lag_time_max_ms=LAG_TIME_MAX_MS)
    election = an_election(isr=isr, replicas=replicas, end_offset=end_offset, high_watermark=high_watermark)
    leader.elected(election, now_ms, EVERYONE)
    return leader


class ToyLog:
    """A log that is only its offsets and epochs."""

    def __init__(
        self,
        *epochs: tuple[int, int],
        end_offset: int = 0,
        high_watermark: int = 0,
        log_start_offset: int = 0,
    ) -> None:
        self.epochs = ToyEpochs(*epochs)
        self.end_offset = end_offset
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset


def a_follower(log: ToyLog, *, epoch: int = 5) -> PartitionFollower:
    return PartitionFollower(LEADER, LeaderEpoch(epoch), TOPIC_ID, log)


def an_answer(
    *,
    epoch: int = 5,
    at: int,
    error: int = 0,
    high_watermark: int = 0,
    log_start_offset: int = 0,
    record_bytes: int = 0,
    diverging: tuple[int, int] | None = None,
) -> PartitionFetched:
    return PartitionFetched(
        leader_epoch=epoch,
        fetch_offset=at,
        error=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        record_bytes=record_bytes,
        diverging=EpochEndOffset(LeaderEpoch(diverging[0]), Offset(diverging[1])) if diverging else None,
    )
