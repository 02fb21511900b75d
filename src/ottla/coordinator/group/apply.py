"""The only door into the stored state of groups: records of the log, live and when loading."""

from collections.abc import Iterable

from ottla.coordinator.group.group import Group
from ottla.coordinator.group.stored.committed import KEY_HEAD_BYTES, PARTITION_BYTES
from ottla.coordinator.group.stored.transactions import OpenTransactions
from ottla.coordinator.shard import KeyAndValue, StoredRecord
from ottla.model.errors import MalformedRequest
from ottla.wire.stored import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
    decode_stored,
)

COMMON_VALUE_BYTES = 24
COMMON_VALUE_HEAD = b"\0\3"
METADATA_SIZE_AT = 14
"""Nearly all offset values have version 3 and no metadata: they are recognised without decoding."""

_NO_HEAD = b"\xff"
"""No key begins like this."""


class StoredState:
    """Groups by id, and the offsets of open transactions.

    ``Group.stored`` and ``transactions`` change here alone. Offsets stay bytes, so that a million of them
    load fast.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.transactions = OpenTransactions()
        self.unreadable = 0
        self._expect_any_key()

    def _expect_any_key(self) -> None:
        self._head = _NO_HEAD
        self._topic = b""
        self._offsets: dict[bytes, bytes] = {}

    def group(self, group_id: str) -> Group:
        """The group; made if it is not there."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id)
        return group

    def remove(self, group_id: str) -> None:
        """Remove a group of which nothing is stored."""
        self.groups.pop(group_id, None)
        self._expect_any_key()

    # -- records -----------------------------------------------------------------------------

    def apply(self, records: Iterable[KeyAndValue]) -> None:
        """Take committed records in the order of the log; for each key the last one counts."""
        for key, value in records:
            if key is None:
                continue
            if self.transactions:
                self.transactions.overtaken(key, is_tombstone=value is None)
            head = self._head
            if (
                value is not None
                and len(value) == COMMON_VALUE_BYTES
                and value.startswith(COMMON_VALUE_HEAD)
                and key.startswith(head)
                and key[len(head) : -PARTITION_BYTES] == self._topic
                and not (value[METADATA_SIZE_AT] or value[METADATA_SIZE_AT + 1])
            ):
                self._offsets[key[len(head) :]] = value
            else:
                self._apply_any(key, value)

    def apply_in_transaction(self, producer_id: int, records: Iterable[KeyAndValue]) -> None:
        """Take records of a transaction; they wait for its marker."""
        for key, value in records:
            if key is not None:
                self.transactions.wait(producer_id, StoredRecord(key, value))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker: apply what the producer wrote, or drop it."""
        for key, value in self.transactions.end(producer_id, is_commit=is_commit):
            self._apply_any(key, value)

    def _apply_any(self, key: bytes, value: bytes | None) -> None:
        try:
            decoded = decode_group_key(key)
        except MalformedRequest:
            decoded = None
        match decoded:
            case OffsetCommitKey():
                self._apply_offset(key, decoded.group, value)
            case GroupMetadataKey():
                if value is not None or decoded.group in self.groups:
                    self.group(decoded.group).stored.metadata = value
            case _:
                self.unreadable += value is not None

    def _apply_offset(self, key: bytes, group_id: str, value: bytes | None) -> None:
        """The next record is expected to be of the same group and topic."""
        head_bytes = KEY_HEAD_BYTES + len(group_id.encode())
        if value is None:
            if group_id in self.groups:
                self.groups[group_id].offsets.stored.pop(key[head_bytes:], None)
        elif self._is_readable(value):
            self._head, self._topic = key[:head_bytes], key[head_bytes:-PARTITION_BYTES]
            self._offsets = self.group(group_id).offsets.stored
            self._offsets[key[head_bytes:]] = value

    def _is_readable(self, value: bytes) -> bool:
        try:
            decode_stored(OffsetCommitValue, value)
        except MalformedRequest:
            self.unreadable += 1
            return False
        return True
