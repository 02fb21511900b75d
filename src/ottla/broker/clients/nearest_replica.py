"""Which replica a consumer should read from: one in its own rack, if the cluster is set up so (KIP-392)."""

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.replicas.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.replication.leader import FollowerProgress

RACK_AWARE_SELECTORS = frozenset(
    {
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "RackAwareReplicaSelector",
    }
)
NONE = -1


def preferred_read_replica(
    runtime: Runtime,
    metadata: MetadataImage,
    partition: Partition,
    rack: str,
    listener: str,
    fetch_offset: int,
) -> int:
    """The in-sync follower of the consumer's rack that is furthest ahead; -1: read from the leader.

    Replicas outside the ISR are not offered (KAFKA-14372), nor those that lack the offset.
    """
    leader = partition.leader
    if leader is None or runtime.config.replication.replica_selector_class not in RACK_AWARE_SELECTORS:
        return NONE
    brokers = metadata.brokers
    own = brokers.get(runtime.identity.broker_id)
    if own is not None and own.rack == rack:
        return NONE
    best: tuple[int, int, int] | None = None
    for broker, progress in leader.followers.items():
        live = brokers.get(broker)
        if live is None or live.rack != rack or listener not in live.endpoints:
            continue
        if broker in leader.isr.committed and _holds(progress, fetch_offset):
            candidate = (progress.end_offset, progress.last_caught_up_ms, int(broker))
            best = candidate if best is None else max(best, candidate)
    return NONE if best is None else best[2]


def _holds(progress: FollowerProgress, offset: int) -> bool:
    return progress.log_start_offset <= offset <= progress.end_offset
