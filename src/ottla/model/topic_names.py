"""Which names a topic may have, and which topics are Kafka's own."""

import re
from collections.abc import Iterable

from ottla.model.ids import TopicPartition

NAME_LENGTH_MAX = 249
DIRECTORY_NAME_MAX = 255
COPY_TAIL_LENGTH = len(".") + 32 + len("-future")
"""What a partition's name gets behind it while it is copied to another log directory."""
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")


def why_illegal(name: str) -> str | None:
    """What is wrong with a topic's name, in words; None when it is a name."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
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


def _folded(name: str) -> str:
    """The name as metrics write it: of those that are one there only one can be had."""
    return name.replace(".", "_")


class NamesAlike:
    """Of many topics those with which names that are wanted could collide, found without looking at all."""

    __slots__ = ("_by_fold",)

    def __init__(self, wanted: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        self._by_fold: dict[str, list[str]] = {_folded(name): [] for name in wanted if may_collide(name)}
        lengths = set(map(len, self._by_fold))
        for other in others:
            if len(other) in lengths:
                self.add(other)

    def add(self, name: str) -> None:
        """One more topic stands there."""
        alike = self._by_fold.get(_folded(name))
        if alike is not None:
            alike.append(name)

    def colliding(self, name: str) -> list[str]:
        """Those that differ from a name that is wanted in '.' and '_' alone, in their order."""
        return sorted({other for other in self._by_fold.get(_folded(name), ()) if other != name})
