"""What became of a member's share since its program last asked."""

from dataclasses import dataclass

from ottla.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ShareChanges:
    """A partition that went and came back is in two of these: what the program knew of it is out of date."""

    revoked: frozenset[TopicPartition] = frozenset()
    """Given up in good order: what was handed out of them could still be committed."""
    lost: frozenset[TopicPartition] = frozenset()
    """Gone without notice: the group went on without this member, and others may have read on."""
    assigned: frozenset[TopicPartition] = frozenset()
    """Read from now on, from where the group stands."""


class ShareHistory:
    """What happened to a share, until somebody asks."""

    def __init__(self) -> None:
        self._known: frozenset[TopicPartition] = frozenset()
        self._changes = ShareChanges()

    def gave_up(self, partitions: frozenset[TopicPartition], *, is_lost: bool) -> None:
        # One that came and went between two questions was never known.
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
        """All since the last call."""
        changes, self._changes = self._changes, ShareChanges()
        self._known |= changes.assigned
        return changes
