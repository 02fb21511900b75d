"""Guards of APIs that name topics: each topic has its own answer."""

from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import (
    FORBIDDEN_TOPIC,
    FORBIDDEN_TRANSACTION,
    RowKind,
    adding,
)
from ottla.broker.clients.request import Request
from ottla.model.errors import ErrorCode
from ottla.records.batch import TRANSACTIONAL_BIT
from ottla.security.acls.kinds import Operation
from ottla.wire.apis import create_partitions as partitions_api
from ottla.wire.apis import create_topics as topics_api
from ottla.wire.apis import delete_records as delete_api
from ottla.wire.apis import describe_producers as producers_api
from ottla.wire.apis import list_offsets as offsets_api
from ottla.wire.apis import offset_for_leader_epoch as epoch_api
from ottla.wire.apis import produce as produce_api

_PRODUCED = RowKind(
    produce_api.TopicProduceResponse,
    lambda index, error: produce_api.PartitionProduceResponse(
        index=index, error_code=error, base_offset=-1, log_start_offset=-1
    ),
)
_OFFSETS = RowKind(
    offsets_api.ListOffsetsTopicResponse,
    lambda index, error: offsets_api.ListOffsetsPartitionResponse(partition_index=index, error_code=error),
)
_EPOCHS = RowKind(
    epoch_api.OffsetForLeaderTopicResult,
    lambda index, error: epoch_api.EpochEndOffset(error_code=error, partition=index),
)
_DELETED = RowKind(
    delete_api.DeleteRecordsTopicResult,
    lambda index, error: delete_api.DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=-1, error_code=error
    ),
)
_PRODUCERS = RowKind(
    producers_api.TopicResponse,
    lambda index, error: producers_api.PartitionResponse(
        partition_index=index, error_code=error, error_message="Topic authorization failed."
    ),
)
_MAGIC_PLACE, _ATTRIBUTES_PLACE, _MAGIC = 16, 22, 2
"""Where the first batch of records says of which format it is, and whether it belongs to a transaction."""


def produce(node: Any, access: Access, request: Request, body: produce_api.ProduceRequest) -> Any:
    """A transaction needs its id; then each topic for itself. Whoever wants no answer is hung up on."""
    if _is_transactional(body):
        name = body.transactional_id
        if name is None or not access.transaction(name):
            rows = _PRODUCED.refused(body.topic_data, FORBIDDEN_TRANSACTION)
            return _refuse_produce(request, body, rows)
    body.topic_data, rows = _PRODUCED.split(access, body.topic_data)
    if rows and not body.topic_data:
        return _refuse_produce(request, body, rows)
    if rows:
        request.amend = adding("responses", rows)
        if body.acks == 0:
            request.hang_up_reason = _SILENTLY
            request.connection.is_doomed = True
    return None


_SILENTLY = "produce with acks=0 to a topic without the right to write"


def _refuse_produce(request: Request, body: produce_api.ProduceRequest, rows: list[Any]) -> Any:
    if body.acks == 0:
        request.hang_up_reason = _SILENTLY
        request.connection.is_doomed = True
    return produce_api.ProduceResponse(rows)


def _is_transactional(body: produce_api.ProduceRequest) -> bool:
    return any(
        data.records is not None
        and len(data.records) > _ATTRIBUTES_PLACE
        and data.records[_MAGIC_PLACE] == _MAGIC
        and data.records[_ATTRIBUTES_PLACE] & TRANSACTIONAL_BIT
        for topic in body.topic_data
        for data in topic.partition_data
    )


def list_offsets(node: Any, access: Access, request: Request, body: offsets_api.ListOffsetsRequest) -> Any:
    body.topics, rows = _OFFSETS.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None


def offset_for_leader_epoch(
    node: Any, access: Access, request: Request, body: epoch_api.OffsetForLeaderEpochRequest
) -> Any:
    """Brokers may ask about everything."""
    if access.cluster(is_quiet=True):
        return
    body.topics, rows = _EPOCHS.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None


def delete_records(node: Any, access: Access, request: Request, body: delete_api.DeleteRecordsRequest) -> Any:
    body.topics, rows = _DELETED.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None


def describe_producers(
    node: Any, access: Access, request: Request, body: producers_api.DescribeProducersRequest
) -> Any:
    body.topics, rows = _PRODUCERS.split(access, body.topics)
    request.amend = adding("topics", rows) if rows else None


def create_topics(node: Any, access: Access, request: Request, body: topics_api.CreateTopicsRequest) -> Any:
    """A right to the cluster is enough; a topic's settings are told to whom may see them."""
    if not node.controller.is_active:
        return None
    names = [topic.name for topic in body.topics]
    allowed = set(names) if access.cluster(is_quiet=True) else access.topics(names, Operation.CREATE)
    shown = access.topics(names, Operation.DESCRIBE_CONFIGS, is_quiet=True)
    refused = [
        topics_api.CreatableTopicResult(
            name=name, error_code=FORBIDDEN_TOPIC, error_message="Authorization failed."
        )
        for name in dict.fromkeys(names)
        if name not in allowed
    ]
    body.topics = [topic for topic in body.topics if topic.name in allowed]

    def amend(response: Any) -> Any:
        response.topics = [*response.topics, *refused]
        for row in response.topics:
            if row.name not in shown:
                row.topic_config_error_code = FORBIDDEN_TOPIC
                row.num_partitions, row.replication_factor, row.configs = -1, -1, []
        return response

    if not body.topics:
        return amend(topics_api.CreateTopicsResponse(topics=[]))
    request.amend = amend
    return None


def create_partitions(
    node: Any, access: Access, request: Request, body: partitions_api.CreatePartitionsRequest
) -> Any:
    if not node.controller.is_active:
        return None
    allowed = access.topics(topic.name for topic in body.topics)
    rows = [
        partitions_api.CreatePartitionsTopicResult(
            name=topic.name,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The topic authorization is failed.",
        )
        for topic in body.topics
        if topic.name not in allowed
    ]
    body.topics = [topic for topic in body.topics if topic.name in allowed]
    if not body.topics:
        return partitions_api.CreatePartitionsResponse(results=rows)
    request.amend = adding("results", rows) if rows else None
    return None
