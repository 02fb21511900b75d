"""Offsets of many partitions, of which some may have no leader, or be gone."""

from collections.abc import Collection, Mapping

from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.fetching.offsets import list_offsets
from ottla.insight.wording import joined
from ottla.model.ids import TopicPartition


def offsets_at(client: Client, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The offset for a time of each partition that exists and has a leader; -1 where there is none."""
    led = partitions_with_leader(client, {name.topic for name in timestamps})
    wanted = {name: time for name, time in timestamps.items() if name in led}
    if not wanted:
        return {}
    found = client.run(list_offsets, wanted)
    return {name: row.offset for name, row in found.items()}


def partitions_with_leader(client: Client, topics: set[str]) -> set[TopicPartition]:
    """The partitions of these topics that can be asked."""
    return {name for name, is_led in _partitions(client, topics).items() if is_led}


def require_leaders(client: Client, names: Collection[TopicPartition]) -> None:
    """Refuse partitions that are not there or have no leader, in Kafka's words."""
    known = _partitions(client, {name.topic for name in names})
    missing = sorted(name for name in names if name not in known)
    if missing:
        raise CommandRefused(f'The partitions "{joined(missing)}" do not exist')
    leaderless = sorted(name for name in names if not known[name])
    if leaderless:
        raise CommandRefused(f'The partitions "{joined(leaderless)}" have no leader')


def _partitions(client: Client, topics: set[str]) -> dict[TopicPartition, bool]:
    """The partitions of these topics, and whether a live broker leads them."""
    if not topics:
        return {}
    response = client.run(describe_topics, sorted(topics))
    live = {broker.node_id for broker in response.brokers}
    return {
        TopicPartition(row.name, partition.partition_index): partition.leader_id in live
        for row in response.topics
        for partition in row.partitions
        if row.name is not None
    }
