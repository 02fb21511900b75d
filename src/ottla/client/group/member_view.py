"""What a group's consumer can tell without waiting, whichever edge it stands on."""

from ottla.client.group.changes import ShareChanges
from ottla.client.group.core import GroupConsumerCore
from ottla.model.ids import TopicPartition


class MemberView:
    """A member of a group as its program sees it."""

    def __init__(self, core: GroupConsumerCore) -> None:
        self._core = core

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What this member reads now."""
        return self._core.membership.owned

    def changes(self) -> ShareChanges:
        """What became of the share since the last call: ask after each ``poll``, before its records."""
        return self._core.history.take()

    @property
    def member_id(self) -> str:
        return self._core.membership.member_id

    @property
    def generation(self) -> int:
        return self._core.membership.generation
