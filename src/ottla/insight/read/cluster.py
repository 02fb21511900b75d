"""A whole look at the cluster: topics, settings that count, moves that go on."""

from collections.abc import Iterable

from ottla.client.admin.cluster import list_partition_reassignments
from ottla.client.admin.configs import ResourceType, describe_configs
from ottla.client.admin.topics import describe_topics
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.client.errors import BrokerError
from ottla.insight.picture import BrokerSeen, PartitionSeen, Picture, TopicSeen
from ottla.model.ids import TopicPartition
from ottla.wire.apis.list_partition_reassignments import OngoingPartitionReassignment

DEFAULT_CONFIG = 5
"""The source of a setting that nobody set."""

Settings = dict[str, tuple[str, bool]]
"""Value, and whether it is the default."""


def read_picture(
    engine: Engine, *, controller_epoch: int | None = None, timeout_ms: int | None = None
) -> Operation[Picture]:
    """Ask the cluster for all that a picture shows: three requests."""
    found = yield from describe_topics(engine, timeout_ms=timeout_ms)
    rows = sorted((row for row in found.topics if row.name), key=lambda row: row.name or "")
    names = [row.name for row in rows if row.name]
    settings = (yield from topic_settings(engine, names, timeout_ms)) if names else {}
    moving = (yield from moves_under_way(engine, timeout_ms)) if names else {}
    topics = {}
    partitions = {}
    for row in rows:
        name = row.name or ""
        topics[name] = topic_seen(name, row.topic_id, settings.get(name, {}), is_internal=row.is_internal)
        for part in sorted(row.partitions, key=lambda part: part.partition_index):
            move = moving.get(TopicPartition(name, part.partition_index))
            partitions[TopicPartition(name, part.partition_index)] = PartitionSeen(
                part.partition_index,
                part.leader_id,
                part.replica_nodes,
                part.isr_nodes,
                () if move is None else move.adding_replicas,
                () if move is None else move.removing_replicas,
                part.leader_epoch,
            )
    brokers = {row.node_id: BrokerSeen(row.node_id, row.host, row.port, row.rack) for row in found.brokers}
    return Picture(
        found.cluster_id or "?", found.controller_id, controller_epoch, brokers, topics, partitions
    )


def topic_seen(name: str, topic_id: bytes, settings: Settings, *, is_internal: bool = False) -> TopicSeen:
    """A topic with the settings that were read of it."""
    return TopicSeen(
        name,
        bytes(topic_id),
        is_internal,
        int(settings.get("min.insync.replicas", ("1", True))[0] or 1),
        settings.get("unclean.leader.election.enable", ("false", True))[0] == "true",
        {key: value for key, (value, is_default) in settings.items() if not is_default},
    )


def topic_settings(
    engine: Engine, names: Iterable[str], timeout_ms: int | None = None
) -> Operation[dict[str, Settings]]:
    """Settings by topic. A topic may vanish meanwhile."""
    resources = [(ResourceType.TOPIC, name) for name in names]
    rows = yield from describe_configs(engine, resources, timeout_ms=timeout_ms)
    return {
        row.resource_name: {
            config.name: (config.value or "", config.config_source == DEFAULT_CONFIG)
            for config in sorted(row.configs, key=lambda config: config.name)
        }
        for row in rows
        if not row.error_code
    }


def moves_under_way(
    engine: Engine, timeout_ms: int | None = None
) -> Operation[dict[TopicPartition, OngoingPartitionReassignment]]:
    """Ongoing reassignments; who may not see them sees none, as with Kafka's tool."""
    try:
        return (yield from list_partition_reassignments(engine, timeout_ms=timeout_ms))
    except BrokerError:
        return {}
