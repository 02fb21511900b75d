"""Which partitions ``--topic orders:0,1`` means, and where a group has committed."""

from ottla.cli.shared.options import numbers
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.groups import list_group_offsets
from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.model.ids import TopicPartition


def named_partitions(client: Client, topics: list[str]) -> list[TopicPartition]:
    """All partitions of a topic, or those behind the colon; a topic that is not there is refused."""
    wanted: dict[str, list[int]] = {}
    for text in topics:
        name, _, part = text.partition(":")
        wanted.setdefault(name, []).extend(numbers("--topic", part))
    found = {
        row.name: {partition.partition_index for partition in row.partitions}
        for row in client.run(describe_topics, list(wanted)).topics
        if not row.error_code
    }
    partitions = []
    for name, some in wanted.items():
        if name not in found:
            raise CommandRefused(f"there is no topic {name}; see `ottla topics --list`")
        missing = set(some) - found[name]
        if missing:
            raise CommandRefused(f"topic {name} has no partition {min(missing)}")
        partitions += [TopicPartition(name, number) for number in sorted(some or found[name])]
    return partitions


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, int]:
    """The offsets that a group has committed."""
    return {
        name: row.committed_offset
        for name, row in client.run(list_group_offsets, group).items()
        if not row.error_code and row.committed_offset >= 0
    }
