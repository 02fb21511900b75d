"""Which names a topic may have, and which topics are Kafka's own."""

import re
from collections.abc import Iterable

from ottla.model.ids import TopicPartition

NAME_LENGTH_MAX = 249
DIRECTORY_NAME_MAX = 255
COPY_TAIL_LENGTH = len(".") + 32 + len("-future")
"""What a partition's name gets behind it while it is copied to another log directory."""
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")


def why_illegal(name: str) -> str | None:
    """What is wrong with a topic's name, in words; None when it is a name."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return "'.' or '..' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def may_be_hosted(partition: TopicPartition) -> bool:
    """Can a log be made for it? A name that no directory can have must not pass for a disk that failed."""
    return (
        why_illegal(partition.topic) is None
        and partition.partition >= 0
        and len(str(partition)) <= DIRECTORY_NAME_MAX
    )


def may_be_copied(partition: TopicPartition) -> bool:
    """Can a copy lie in another log directory? Its name there is longer than the log's."""
    return len(str(partition)) + COPY_TAIL_LENGTH <= DIRECTORY_NAME_MAX


def may_collide(name: str) -> bool:
    """Whether another name can differ from it in '.' and '_' alone."""
    return "." in name or "_" in name


def colliding(name: str, others: Iterable[str]) -> list[str]:
    """Metrics write '.' as '_': of names that differ in that alone only one can be had."""
    if not may_collide(name):
        return []
    folded, length = name.replace(".", "_"), len(name)
    return [
        other
        for other in others
        if len(other) == length and other != name and other.replace(".", "_") == folded
    ]
