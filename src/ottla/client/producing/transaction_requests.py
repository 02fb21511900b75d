"""The requests of a transactional producer, and the error codes in their answers."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from ottla.client.fetching.decoding import Position
from ottla.client.group.metadata import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.apis.end_txn import EndTxnRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.wire.fields import Request as Request
from ottla.wire.fields import Response

R = TypeVar("R", bound=Response)
Codes: TypeAlias = Callable[[R], Iterable[int]]

ADD_PARTITIONS_VERSION_MAX = 3
"""Later versions are for brokers."""


def as_positions(offsets: Mapping[TopicPartition, Position | int]) -> dict[TopicPartition, Position]:
    """Offsets without a leader epoch, too, as positions."""
    return {tp: at if isinstance(at, Position) else Position(at) for tp, at in offsets.items()}


def init_producer(
    transactional_id: str,
    timeout_ms: int,
    producer: tuple[int, int],
    *,
    keeps: bool = False,
    without_timeout: bool = False,
) -> InitProducerIdRequest:
    """``producer`` is the id and epoch to go on from, or -1 and -1.

    ``keeps`` leaves an open transaction open, and perhaps takes its time-out away (KIP-939).
    """
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer[0],
        producer_epoch=producer[1],
        enable_2pc=without_timeout,
        keep_prepared_txn=keeps,
    )


def init_codes(answer: InitProducerIdResponse) -> list[int]:
    return [answer.error_code]


def add_partitions(
    transactional_id: str, producer: tuple[int, int], partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(each)) for topic, each in numbers.items()
        ],
    )


def partition_codes(answer: AddPartitionsToTxnResponse) -> list[int]:
    return [
        row.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    ]


def add_offsets(transactional_id: str, producer: tuple[int, int], group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group,
    )


def commit_offsets(
    transactional_id: str,
    producer: tuple[int, int],
    offsets: Mapping[TopicPartition, Position],
    group: GroupMetadata,
) -> TxnOffsetCommitRequest:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for partition, position in offsets.items():
        topic = topics.setdefault(
            partition.topic, TxnOffsetCommitRequestTopic(name=partition.topic, partitions=[])
        )
        row = TxnOffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=position.offset,
            committed_leader_epoch=position.leader_epoch,
        )
        topic.partitions.append(row)
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=list(topics.values()),
    )


def offset_codes(answer: TxnOffsetCommitResponse) -> list[int]:
    return [row.error_code for topic in answer.topics for row in topic.partitions]


def end(transactional_id: str, producer: tuple[int, int], *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
