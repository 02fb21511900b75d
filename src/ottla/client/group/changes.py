"""How a member's share changed since its program last asked."""

from dataclasses import dataclass

from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ShareChanges:
    """A partition that went and came back is in two sets: the program's state for it is out of date."""

    revoked: frozenset[TopicPartition] = frozenset()
    """Given up in order: offsets of their polled records could still be committed."""
    lost: frozenset[TopicPartition] = frozenset()
    """Lost: the group rebalanced without this member, and others may have read on."""
    assigned: frozenset[TopicPartition] = frozenset()
    """Read from now on, from the group's committed offsets."""


class ShareHistory:
    """Collects the changes of a share until they are taken."""

    def __init__(self) -> None:
        self._known: frozenset[TopicPartition] = frozenset()
        self._changes = ShareChanges()

    def gave_up(self, partitions: frozenset[TopicPartition], *, is_lost: bool) -> None:
        # A partition that came and went between two calls was never reported.
        told = partitions & self._known
        self._known -= partitions
        now = self._changes
        self._changes = ShareChanges(
            now.revoked if is_lost else now.revoked | told,
            now.lost | told if is_lost else now.lost,
            now.assigned - partitions,
        )

    def took_over(self, partitions: frozenset[TopicPartition]) -> None:
        now = self._changes
        self._changes = ShareChanges(now.revoked, now.lost, now.assigned | partitions)

    def take(self) -> ShareChanges:
        """All changes since the last call."""
        changes, self._changes = self._changes, ShareChanges()
        self._known |= changes.assigned
        return changes
