"""Pictures of clusters for tests: three live brokers unless said otherwise."""

from __future__ import annotations

from ottla.insight.picture import BrokerSeen, PartitionSeen, Picture, TopicSeen
from ottla.model.ids import TopicPartition


def a_picture(
    partitions: dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]],
    *,
    live: tuple[int, ...] = (0, 1, 2),
    min_isr: int = 1,
    is_unclean_allowed: bool = False,
    racks: dict[int, str] | None = None,
    controller: int = 0,
) -> Picture:
    """Partitions by name: leader, replicas, ISR."""
    names = {
        text: TopicPartition(text.rpartition("-")[0], int(text.rpartition("-")[2])) for text in partitions
    }
    return Picture(
        "id",
        controller,
        1,
        {n: BrokerSeen(n, "h", 9092 + n, (racks or {}).get(n)) for n in live},
        {
            name.topic: TopicSeen(name.topic, min_isr=min_isr, is_unclean_allowed=is_unclean_allowed)
            for name in names.values()
        },
        {
            names[text]: PartitionSeen(names[text].partition, leader, replicas, isr, leader_epoch=3)
            for text, (leader, replicas, isr) in partitions.items()
        },
    )
