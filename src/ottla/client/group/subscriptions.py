"""Subscriptions and shares as the bytes that members exchange through the coordinator."""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.group.assignors.protocol import NO_GENERATION, MemberData
from ottla.model.errors import MalformedRequest
from ottla.model.ids import TopicPartition
from ottla.wire.apis.join_group import JoinGroupResponseMember
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    decode_assignment,
    decode_subscribed_topics,
    decode_subscription,
    encode_blob,
)

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 1
STICKY, COOPERATIVE_STICKY = "sticky", "cooperative-sticky"
_INT = struct.Struct(">i")
_LENGTH = struct.Struct(">h")


class Share(NamedTuple):
    """Partitions that a member has or had, and their generation."""

    partitions: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION


def encode_subscription(
    assignor: str, topics: Sequence[str], owned: Share, last: Share, rack: str = ""
) -> bytes:
    """This member's topics, rack, owned partitions (none for an eager member, which gave them up before it
    joined), and its last share, which sticky assignors keep in their user data."""
    return encode_blob(
        ConsumerProtocolSubscription(
            topics=tuple(sorted(topics)),
            user_data=_user_data(assignor, last),
            owned_partitions=by_topic(owned.partitions) if assignor != STICKY else [],
            generation_id=owned.generation,
            rack_id=rack or None,
        ),
        SUBSCRIPTION_VERSION,
    )


def _user_data(assignor: str, last: Share) -> bytes | None:
    """Leaders before Kafka 3.4 read a cooperative member's generation here; without it they give its
    partitions to others."""
    if assignor == COOPERATIVE_STICKY:
        return _INT.pack(last.generation)
    return _sticky_data(last) if assignor == STICKY else None


def decode_member(assignor: str, row: JoinGroupResponseMember) -> MemberData:
    """A member as its subscription describes it. If that is incomplete the member owns nothing; if it cannot
    be read the member wants nothing."""
    try:
        said = decode_subscription(row.metadata)
    except MalformedRequest:
        return MemberData(row.member_id, _topics_at_least(row), row.group_instance_id)
    owned, generation = _flat(said.owned_partitions), said.generation_id
    if assignor == STICKY:
        owned, generation = _read_sticky_data(said.user_data)
    elif generation == NO_GENERATION and said.user_data is not None and len(said.user_data) == _INT.size:
        (generation,) = _INT.unpack(said.user_data)  # Cooperative members before version 2 put it here.
    return MemberData(
        row.member_id,
        frozenset(said.topics),
        row.group_instance_id,
        tuple(owned),
        generation,
        said.rack_id or "",
    )


def _topics_at_least(row: JoinGroupResponseMember) -> frozenset[str]:
    try:
        return frozenset(decode_subscribed_topics(row.metadata))
    except MalformedRequest:
        return frozenset()


def encode_share(partitions: Iterable[TopicPartition]) -> bytes:
    return encode_blob(
        ConsumerProtocolAssignment(assigned_partitions=by_topic(partitions)), ASSIGNMENT_VERSION
    )


def decode_share(blob: bytes) -> frozenset[TopicPartition]:
    """A member's share; raises ``MalformedRequest`` if the bytes are not one."""
    return frozenset(_flat(decode_assignment(blob).assigned_partitions))


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    rows: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        rows.setdefault(partition.topic, []).append(partition.partition)
    return [TopicPartitions(topic=topic, partitions=tuple(numbers)) for topic, numbers in rows.items()]


def _flat(rows: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(row.topic, number) for row in rows for number in row.partitions]


def _sticky_data(last: Share) -> bytes:
    """Kafka's form: topics with their partitions, then the generation."""
    rows = by_topic(last.partitions)
    parts = [_INT.pack(len(rows))]
    for row in rows:
        name = row.topic.encode()
        parts += [_LENGTH.pack(len(name)), name, _INT.pack(len(row.partitions))]
        parts += [_INT.pack(number) for number in row.partitions]
    return b"".join([*parts, _INT.pack(last.generation)])


def _read_sticky_data(data: bytes | None) -> tuple[list[TopicPartition], int]:
    """Missing or unreadable data means that the member owned nothing. Old data has no generation."""
    if data is None:
        return [], NO_GENERATION
    owned: list[TopicPartition] = []
    try:
        (topics,), at = _INT.unpack_from(data, 0), _INT.size
        for _ in range(topics):
            (length,), at = _LENGTH.unpack_from(data, at), at + _LENGTH.size
            name, at = bytes(data[at : at + length]).decode(), at + length
            (count,), at = _INT.unpack_from(data, at), at + _INT.size
            for _ in range(count):
                (number,), at = _INT.unpack_from(data, at), at + _INT.size
                owned.append(TopicPartition(name, number))
        generation = _INT.unpack_from(data, at)[0] if len(data) >= at + _INT.size else NO_GENERATION
    except (struct.error, UnicodeDecodeError):
        return [], NO_GENERATION
    return owned, generation
