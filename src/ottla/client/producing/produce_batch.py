"""One attempt to write batches to the leaders of their partitions."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.engine.engine import Engine
from ottla.client.engine.metadata import Metadata
from ottla.client.engine.tasks import Ask, Operation, sleep
from ottla.client.errors import BrokerError, ClientError, ConnectionLost
from ottla.client.producing.verdicts import is_stale_leader
from ottla.model.ids import TopicPartition
from ottla.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.primitives import Buffer


class Refused(NamedTuple):
    """Why a batch is not written, and whether the broker named a new leader: then no pause is needed."""

    error: ClientError
    names_leader: bool = False


def produce_batch(
    engine: Engine,
    acks: int,
    partition: TopicPartition,
    records: Buffer,
    transactional_id: str | None = None,
) -> Operation[PartitionProduceResponse | None]:
    """Send a batch to the leader, once; its row, or ``None`` with acks 0.

    Raises if it is not written. If the leader may have moved, the metadata are refreshed.
    """
    leader = engine.metadata.leader_of(partition)
    if leader is None:
        engine.refresh_soon()
        raise ConnectionLost(f"the leader of {partition} is not known")
    request = produce_request(engine, acks, [(partition, records)], transactional_id)
    try:
        response: ProduceResponse | None = yield Ask(leader, request, ProduceResponse if acks else None)
    except ClientError as error:
        doubt_leader(engine, partition, leader, error)
        raise
    if response is None:
        return None
    outcome = read_response(engine.metadata, leader, [partition], response)[partition]
    if isinstance(outcome, Refused):
        if not outcome.names_leader:
            doubt_leader(engine, partition, leader, outcome.error)
        raise outcome.error
    if response.throttle_time_ms:
        yield from sleep(response.throttle_time_ms)
    return outcome


def produce_request(
    engine: Engine,
    acks: int,
    batches: Iterable[tuple[TopicPartition, Buffer]],
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request to one leader with one batch per partition."""
    topics: dict[str, TopicProduceData] = {}
    for partition, records in batches:
        topic = topics.setdefault(partition.topic, TopicProduceData(name=partition.topic))
        topic.partition_data.append(PartitionProduceData(index=partition.partition, records=records))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=engine.config.request_timeout_ms,
        topic_data=list(topics.values()),
    )


def read_response(
    metadata: Metadata, leader: int, partitions: Iterable[TopicPartition], response: ProduceResponse
) -> dict[TopicPartition, PartitionProduceResponse | Refused]:
    """The outcome of each partition's batch; leaders that the broker names are noted."""
    rows = {
        TopicPartition(topic.name, row.index): row
        for topic in response.responses
        for row in topic.partition_responses
    }
    outcomes: dict[TopicPartition, PartitionProduceResponse | Refused] = {}
    for partition in partitions:
        row = rows.get(partition)
        if row is None:
            outcomes[partition] = Refused(ConnectionLost(f"broker {leader} answered without {partition}"))
        elif row.error_code:
            names_leader = metadata.learn_leader(partition, row.current_leader, response.node_endpoints)
            outcomes[partition] = Refused(BrokerError(row.error_code, _detail(row)), names_leader)
        else:
            outcomes[partition] = row
    return outcomes


def doubt_leader(engine: Engine, partition: TopicPartition, leader: int, error: ClientError) -> None:
    """Refresh the metadata if the error may mean that they are stale."""
    if is_stale_leader(error):
        engine.refresh_soon()
        if isinstance(error, BrokerError):
            engine.metadata.forget_leader(partition, leader)


def _detail(row: PartitionProduceResponse) -> str | None:
    """The broker's message on a refused batch."""
    if row.record_errors and not row.error_message:
        return row.record_errors[0].batch_index_error_message
    return row.error_message
