"""What a coordinator's host must know of the internal topic whose partitions are its shards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ottla.coordinator.shard import Shard
from ottla.model.errors import ErrorCode
from ottla.model.spread import coordinating_partition

S = TypeVar("S", bound=Shard[Any])


@dataclass(frozen=True, slots=True)
class InternalTopic(Generic[S]):
    """One internal topic: its name, its settings, and how to make a shard for one of its partitions."""

    name: str
    new_shard: Callable[[], S]
    partitions_planned: int
    """The number of partitions that the topic will be created with, as long as it does not exist."""
    append_acks: int
    append_timeout_ms: int
    invalid_key: ErrorCode
    """The answer for a key that is too long for a record."""

    def partition_of(self, key: str, partition_count: int) -> int:
        """The partition that a group or transactional id belongs to."""
        return coordinating_partition(key, partition_count or self.partitions_planned)
