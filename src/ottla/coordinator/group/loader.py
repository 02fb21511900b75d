"""Rebuilding the groups of a shard from the records of its log (the one door into loaded state)."""

from collections.abc import Iterable

from ottla.coordinator.group.committed import KEY_HEAD_BYTES, PARTITION_BYTES, CommittedOffsets
from ottla.coordinator.group.effects import StoredRecord
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.members import Member, Protocol
from ottla.coordinator.group.records import subscribed_topics
from ottla.coordinator.group.states import GroupState
from ottla.coordinator.group.transactions import OpenTransactions
from ottla.model.errors import MalformedRequest
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
    decode_stored,
)

COMMON_VALUE_BYTES = 24
COMMON_VALUE_HEAD = b"\0\3"
METADATA_SIZE_AT = 14
"""An offset's value in version 3 without metadata, as nearly all of them are: known by its looks alone."""


class Loader:
    """Takes the records of a log in their order, then makes groups of what is left of them.

    Of each key only the last value counts. Offsets stay bytes, so that a million of them cost a walk.
    """

    def __init__(self) -> None:
        self._offsets: dict[str, dict[bytes, bytes]] = {}
        self._stored_groups: dict[str, bytes] = {}
        self._groups: dict[str, Group] = {}
        self._head = b""
        self._topic = b""
        self._of_group: dict[bytes, bytes] = {}
        self.transactions = OpenTransactions()
        self.unreadable = 0
        """Records of a kind or version that we do not know, or that make no sense: skipped."""

    # -- records -----------------------------------------------------------------------------

    def apply(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Take committed records, key and value; they are newer than whatever waits for a marker."""
        for key, value in records:
            if key is None:
                continue
            if self.transactions:
                self.transactions.overtaken(key)
            head = self._head
            if (
                value is not None
                and len(value) == COMMON_VALUE_BYTES
                and value.startswith(COMMON_VALUE_HEAD)
                and key.startswith(head)
                and key[len(head) : -PARTITION_BYTES] == self._topic
                and not (value[METADATA_SIZE_AT] or value[METADATA_SIZE_AT + 1])
            ):
                self._of_group[key[len(head) :]] = value
            else:
                self._apply_any(key, value)

    def apply_in_transaction(self, producer_id: int, offset: int, record: StoredRecord) -> None:
        """Take one record of a transaction, written at that offset: it waits for the marker."""
        self.transactions.wait(producer_id, offset, record)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker: what the producer wrote is applied now, or never was."""
        for record in self.transactions.end(producer_id, is_commit=is_commit):
            self._apply_any(record.key, record.value)

    def _apply_any(self, key: bytes, value: bytes | None) -> None:
        try:
            decoded = decode_group_key(key)
        except MalformedRequest:
            decoded = None
        match decoded:
            case OffsetCommitKey():
                self._apply_offset(key, decoded.group, value)
            case GroupMetadataKey():
                self._stored_groups.pop(decoded.group, None)
                if value is not None:
                    self._stored_groups[decoded.group] = value
            case _:
                self.unreadable += value is not None

    def _apply_offset(self, key: bytes, group_id: str, value: bytes | None) -> None:
        """Its group and topic are the ones expected of the next record, too."""
        head_bytes = KEY_HEAD_BYTES + len(group_id.encode())
        self._head, self._topic = key[:head_bytes], key[head_bytes:-PARTITION_BYTES]
        self._of_group = self._offsets.setdefault(group_id, {})
        if value is None:
            self._of_group.pop(key[head_bytes:], None)
        elif self._is_readable(value):
            self._of_group[key[head_bytes:]] = value

    def _is_readable(self, value: bytes) -> bool:
        try:
            decode_stored(OffsetCommitValue, value)
        except MalformedRequest:
            self.unreadable += 1
            return False
        return True

    # -- groups ------------------------------------------------------------------------------

    def make_some(self, count: int) -> bool:
        """Make up to that many groups; true once all are made and ``groups`` can be taken."""
        for _ in range(count):
            if self._stored_groups:
                self._restore(*self._stored_groups.popitem())
            elif self._offsets:
                group_id, offsets = self._offsets.popitem()
                if offsets:
                    group = self._groups.setdefault(group_id, Group(group_id))
                    group.offsets = CommittedOffsets(offsets)
            else:
                return True
        return False

    def groups(self) -> dict[str, Group]:
        """The groups as the log tells them; offsets without a group make one that has no members."""
        return self._groups

    def _restore(self, group_id: str, value: bytes) -> None:
        try:
            self._groups[group_id] = _restored(group_id, decode_stored(GroupMetadataValue, value))
        except MalformedRequest:
            self.unreadable += 1


def _restored(group_id: str, stored: GroupMetadataValue) -> Group:
    group = Group(
        group_id,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        state_timestamp_ms=stored.current_state_timestamp,
    )
    for known in stored.members:
        group.add(
            Member(
                member_id=known.member_id,
                group_instance_id=known.group_instance_id,
                client_id=known.client_id,
                client_host=known.client_host,
                rebalance_timeout_ms=known.rebalance_timeout
                if known.rebalance_timeout >= 0
                else known.session_timeout,
                session_timeout_ms=known.session_timeout,
                protocol_type=stored.protocol_type,
                protocols=(Protocol(stored.protocol or "", bytes(known.subscription)),),
                assignment=bytes(known.assignment),
            )
        )
    group.leader = stored.leader
    group.subscribed_topics = subscribed_topics(group)
    return group
