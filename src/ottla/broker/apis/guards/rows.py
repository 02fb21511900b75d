"""Topics and partitions of requests, and the rows of answers that refuse them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ottla.broker.access.access import Access
from ottla.model.errors import ErrorCode
from ottla.security.acls.kinds import Operation

PartitionRow = Callable[[int, int], Any]
"""From a partition's number and an error code to its row."""
TopicRow = Callable[[str, list[Any]], Any]

FORBIDDEN_TOPIC = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
FORBIDDEN_GROUP = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
FORBIDDEN_CLUSTER = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
FORBIDDEN_TRANSACTION = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

CLUSTER_WORDS = "Cluster authorization failed."


def name_of(topic: Any) -> str:
    """What requests call a topic's name."""
    name: str = topic.topic if hasattr(topic, "topic") else topic.name
    return name


def indexes_of(topic: Any) -> Iterator[int]:
    """The partitions that a request names of a topic, however it does."""
    for field in ("partitions", "partition_indexes", "partition_data"):
        if hasattr(topic, field):
            for each in getattr(topic, field):
                yield each if isinstance(each, int) else _index(each)


def _index(row: Any) -> int:
    for field in ("partition_index", "index", "partition"):
        if hasattr(row, field):
            number: int = getattr(row, field)
            return number
    raise AssertionError(f"{type(row).__name__} names no partition")


class RowKind:
    """How one API's answer names topics and partitions."""

    def __init__(self, topic_row: TopicRow, partition_row: PartitionRow) -> None:
        self._topic_row = topic_row
        self._partition_row = partition_row

    def refused(self, topics: Iterable[Any], error: int) -> list[Any]:
        """A row with that error for every partition."""
        row = self._partition_row
        return [
            self._topic_row(name_of(topic), [row(index, error) for index in indexes_of(topic)])
            for topic in topics
        ]

    def split(
        self, access: Access, topics: list[Any], operation: Operation | None = None
    ) -> tuple[list[Any], list[Any]]:
        """The topics that the client may use, and the rows of the others."""
        allowed = access.topics(map(name_of, topics), operation)
        refused = [topic for topic in topics if name_of(topic) not in allowed]
        if not refused:
            return topics, []
        kept = [topic for topic in topics if name_of(topic) in allowed]
        return kept, self.refused(refused, FORBIDDEN_TOPIC)


def adding(field: str, rows: list[Any]) -> Callable[[Any], Any]:
    """An answer with these rows behind its own."""

    def amend(response: Any) -> Any:
        setattr(response, field, [*getattr(response, field), *rows])
        return response

    return amend
