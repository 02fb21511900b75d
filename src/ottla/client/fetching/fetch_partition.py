"""One fetch of one partition: from its leader, or from the broker that the caller names."""

from ottla.client.config import ConsumerConfig
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation, ask, sleep
from ottla.client.errors import BrokerError, ConnectionLost
from ottla.model.ids import TopicPartition
from ottla.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.primitives import ZERO_UUID

LAST_VERSION_WITH_NAMES = 12
"""Later versions carry topic ids only."""


def fetch_request(
    config: ConsumerConfig, topics: list[FetchTopic], rack: str
) -> tuple[FetchRequest, int | None]:
    """A fetch within the configured limits, and the highest version that may carry it (``None``: any)."""
    request = FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=config.fetch_max_bytes,
        isolation_level=config.isolation_number,
        topics=topics,
        rack_id=rack,
    )
    has_all_ids = all(topic.topic_id != ZERO_UUID for topic in topics)
    return request, None if has_all_ids else LAST_VERSION_WITH_NAMES


def fetch_partition(
    engine: Engine,
    config: ConsumerConfig,
    partition: TopicPartition,
    offset: int,
    *,
    broker: int | None = None,
    rack: str = "",
    topic_id: bytes | None = None,
) -> Operation[PartitionData]:
    """Fetch from an offset on, from the leader unless a broker is given; one attempt.

    The records are valid until the caller waits again. Raises the broker's error; if the broker named a new
    leader, the next attempt goes there.
    """
    metadata = engine.metadata
    topic, info = metadata.topics.get(partition.topic), metadata.partition(partition)
    source = metadata.leader_of(partition) if broker is None else broker
    if source is None:
        raise ConnectionLost(f"the leader of {partition} is not known")
    if topic is None or info is None:
        raise ConnectionLost(f"the metadata no longer name {partition}")
    wanted = FetchPartition(
        partition=partition.partition,
        current_leader_epoch=info.leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=config.max_partition_fetch_bytes,
    )
    asked_id = topic_id if topic_id is not None and topic.topic_id != ZERO_UUID else topic.topic_id
    request, version_max = fetch_request(config, [FetchTopic(partition.topic, asked_id, [wanted])], rack)
    timeout_ms = engine.config.request_timeout_ms + config.fetch_max_wait_ms
    response = yield from ask(source, request, FetchResponse, version_max=version_max, timeout_ms=timeout_ms)
    if response.error_code:
        raise BrokerError(response.error_code)
    rows = [row for entry in response.responses for row in entry.partitions]
    if not rows:
        raise ConnectionLost(f"broker {source} answered without {partition}")
    row = rows[0]
    if row.error_code:
        metadata.learn_leader(partition, row.current_leader, response.node_endpoints)
        raise BrokerError(row.error_code, str(partition))
    if response.throttle_time_ms:
        # The broker mutes this connection for that time; the frame is valid only until we wait.
        row.records = bytes(row.records) if row.records is not None else None
        yield from sleep(response.throttle_time_ms)
    return row
