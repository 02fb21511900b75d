"""What a group's consumer can tell without I/O, on both edges."""

from ottla.client.errors import BrokerError
from ottla.client.fetching.decoding import Position
from ottla.client.group.changes import ShareChanges
from ottla.client.group.core import GroupConsumerCore
from ottla.client.group.metadata import GroupMetadata
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition


class MemberView:
    """A member of a group as its program sees it."""

    def __init__(self, core: GroupConsumerCore) -> None:
        self._core = core

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member owns now."""
        return self._core.membership.owned

    def changes(self) -> ShareChanges:
        """How the share changed since the last call. Call it after each ``poll``, before using records."""
        return self._core.history.take()

    @property
    def member_id(self) -> str:
        return self._core.membership.member_id

    @property
    def generation(self) -> int:
        return self._core.membership.generation

    def positions(self) -> dict[TopicPartition, Position]:
        """Behind the records polled so far, for a transaction. Take them right after ``poll``."""
        return self._core.fetching.positions()

    def group_metadata(self) -> GroupMetadata:
        """Who this member is now, for a transaction. Take it right after ``poll``, with the positions.

        If the group gives the partitions to another member later, the coordinator finds that out.
        """
        membership = self._core.membership
        if membership.generation < 0:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION, "this consumer is not in its group: poll first")
        return GroupMetadata(
            membership.group, membership.generation, membership.member_id, membership.config.group_instance_id
        )
