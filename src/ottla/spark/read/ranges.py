"""Offset ranges: what one task reads, and how ranges are split and limited. Pure arithmetic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor

from pyspark.sql.datasource import InputPartition

from ottla.model.ids import TopicId, TopicPartition


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The records of a partition from ``start`` up to ``end``."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: TopicId | None = None
    """Which topic is meant, where the cluster has ids: another one may have taken the name."""
    is_from_earliest: bool = False
    """Whether it begins where the log begins: what retention takes there was not asked for."""

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition} [{self.start}, {self.end})"


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """As Spark's connector splits: first by ``maxRecordsPerPartition``, then up to ``minPartitions``."""
    parts = [one for one in ranges if one.size > 0]
    if max_records is not None:
        parts = [piece for one in parts for piece in _divided(one, ceil(one.size / max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts
    total = sum(one.size for one in parts)
    small = [one for one in parts if _share(one.size, total, min_partitions) == 1]
    rest = total - sum(one.size for one in small)
    wanted = max(min_partitions - len(small), 1)
    whole = {one.partition for one in small}
    pieces: list[OffsetRange] = []
    for one in parts:
        pieces += [one] if one.partition in whole else _divided(one, _share(one.size, rest, wanted))
    return pieces


def _share(size: int, total: int, parts: int) -> int:
    """How many of some parts a range of this size gets; halves are rounded up, as Java does."""
    return max(floor(size / total * parts + 0.5), 1)


def _divided(whole: OffsetRange, count: int) -> list[OffsetRange]:
    pieces = []
    start = whole.start
    for left in range(min(count, whole.size), 0, -1):
        end = start + (whole.end - start) // left
        is_first = start == whole.start
        pieces.append(
            replace(whole, start=start, end=end, is_from_earliest=whole.is_from_earliest and is_first)
        )
        start = end
    return pieces


def limited(
    limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """``end``, cut so that about ``limit`` offsets lie before it: each partition gets its share."""
    sizes = {p: end[p] - start[p] for p in end if p in start and end[p] > start[p]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    cut = dict(end)
    for partition, size in sizes.items():
        share = limit * (size / total)  # In this order, as Spark's connector does: equal to the last bit.
        # A share below one is rounded up: no partition may starve.
        cut[partition] = min(end[partition], start[partition] + (ceil(share) if share < 1 else floor(share)))
    return cut
