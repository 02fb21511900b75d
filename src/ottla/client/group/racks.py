"""The racks of partitions, from the client's metadata."""

from collections.abc import Iterable

from ottla.client.engine.metadata import Metadata
from ottla.model.ids import TopicPartition


def racks_of(metadata: Metadata, topics: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
    """The racks of each partition's replicas, without brokers that are down or have no rack."""
    racks: dict[TopicPartition, frozenset[str]] = {}
    for name in topics:
        topic = metadata.topic(name)
        for number, partition in topic.partitions.items() if topic is not None else ():
            brokers = (metadata.brokers.get(replica) for replica in partition.replicas)
            named = frozenset(broker.rack for broker in brokers if broker is not None and broker.rack)
            racks[TopicPartition(name, number)] = named
    return racks
