"""Fetch 0-17: record batches for consumers and followers; parked until there is enough, or time is up.

Versions below 4 would need older record formats: they are refused.
"""

from ottla.broker.clients.parked_fetch import TOPIC_IDS_SINCE, ParkedFetch
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

OLDEST_SERVED = 4
REPLICA_STATE_SINCE = 15
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def handle(node: Node, request: Request, body: FetchRequest) -> FetchResponse | None:
    """Find the reader's session, then answer or park."""
    version = request.api_version
    if version < OLDEST_SERVED:
        return _refuse(body, version, ErrorCode.UNSUPPORTED_VERSION)
    is_named_later = version >= REPLICA_STATE_SINCE
    replica_id = body.replica_state.replica_id if is_named_later else body.replica_id
    if body.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse(body, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    reader = node.fetch_sessions.open(body, version, replica_id, node.clock.monotonic_ms())
    if isinstance(reader, ErrorCode):
        return FetchResponse(error_code=int(reader), session_id=0)
    if reader.parked is not None:
        reader.parked.answer_now()
    if is_named_later:
        reader.registered_as(body.replica_state.replica_epoch)
    max_bytes = min(body.max_bytes, node.config.replication.fetch_max_bytes)
    if (quotas := request.connection.quotas) is not None and reader.replica_id < 0:
        in_burst = quotas.fetch_bytes_max(request)
        max_bytes = max_bytes if in_burst is None else min(max_bytes, in_burst)
    fetch = ParkedFetch(
        node.fetch_context,
        request,
        reader,
        min_bytes=min(body.min_bytes, max_bytes),
        max_bytes=max_bytes,
        is_committed_only=body.isolation_level == READ_COMMITTED,
        rack=body.rack_id,
    )
    return fetch.begin(body.max_wait_ms)


def _refuse(body: FetchRequest, version: int, error: ErrorCode) -> FetchResponse:
    """The whole request is wrong: until topics had ids, every partition says so."""
    response = FetchResponse(error_code=int(error), session_id=body.session_id)
    if version < TOPIC_IDS_SINCE:
        response.responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=each.partition,
                        error_code=int(error),
                        high_watermark=-1,
                        records=None if version >= OLDEST_SERVED else b"",
                        aborted_transactions=[],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    return response
