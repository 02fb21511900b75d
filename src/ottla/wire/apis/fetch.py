"""Fetch: a consumer, or a follower, reads record batches from a leader."""

from typing import Annotated

from ottla.wire.apis.leader_hint import LeaderIdAndEpoch, NodeEndpoint
from ottla.wire.fields import (
    FrozenStruct,
    RecordBatches,
    Request,
    Response,
    Struct,
    i8,
    i16,
    i32,
    i64,
    not_ignorable,
    since,
    tag,
    until,
    uuid,
)
from ottla.wire.primitives import ZERO_UUID


class ReplicaState(FrozenStruct, frozen=True):
    replica_id: i32 = -1
    replica_epoch: i64 = -1


class FetchPartition(Struct):
    partition: i32 = 0
    current_leader_epoch: Annotated[i32, since(9)] = -1
    fetch_offset: i64 = 0
    last_fetched_epoch: Annotated[i32, since(12), not_ignorable] = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    partition_max_bytes: i32 = 0
    replica_directory_id: Annotated[uuid, since(17), tag(0)] = ZERO_UUID


class FetchTopic(Struct):
    topic: Annotated[str, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Struct):
    topic: Annotated[str, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = ZERO_UUID
    partitions: tuple[i32, ...] = ()


class FetchRequest(Request):
    cluster_id: Annotated[str | None, since(12), tag(0)] = None
    replica_id: Annotated[i32, until(14), not_ignorable] = -1
    replica_state: Annotated[ReplicaState, since(15), tag(1), not_ignorable] = ReplicaState()
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: Annotated[i32, since(3)] = 0x7FFF_FFFF
    isolation_level: Annotated[i8, since(4)] = 0
    session_id: Annotated[i32, since(7)] = 0
    session_epoch: Annotated[i32, since(7)] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7), not_ignorable] = []
    rack_id: Annotated[str, since(11)] = ""


class EpochEndOffset(FrozenStruct, frozen=True):
    epoch: i32 = -1
    end_offset: i64 = -1


class SnapshotId(FrozenStruct, frozen=True):
    end_offset: i64 = -1
    epoch: i32 = -1


class AbortedTransaction(Struct):
    producer_id: i64 = 0
    first_offset: i64 = 0


class PartitionData(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0
    last_stable_offset: Annotated[i64, since(4)] = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, since(12), tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tag(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, since(12), tag(2)] = SnapshotId()
    aborted_transactions: Annotated[list[AbortedTransaction] | None, since(4)] = []
    preferred_read_replica: Annotated[i32, since(11)] = -1
    records: RecordBatches = None


class FetchableTopicResponse(Struct):
    topic: Annotated[str, until(12)] = ""
    topic_id: Annotated[uuid, since(13)] = ZERO_UUID
    partitions: list[PartitionData] = []


class FetchResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: Annotated[i16, since(7)] = 0
    session_id: Annotated[i32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tag(0)] = []
