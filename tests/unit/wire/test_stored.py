"""Keys and values of the internal topics, and the consumers' blobs, as Kafka stores them."""

import pytest

from ottla.model.errors import MalformedRequest
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_blob,
)
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    decode_group_key,
    decode_stored,
    decode_transaction_key,
    encode_stored,
)


def test_the_version_of_a_key_tells_its_kind() -> None:
    offset = OffsetCommitKey(group="g", topic="t", partition=3)
    group = GroupMetadataKey(group="g")

    assert decode_group_key(b"\0\x01\0\x01g\0\x01t\0\0\0\x03") == offset
    assert decode_group_key(encode_stored(offset, 0)) == offset
    assert decode_group_key(b"\0\x02\0\x01g") == group
    assert decode_group_key(b"\0\x03whatever newer brokers store") is None
    assert decode_transaction_key(b"\0\0\0\x01x") == TransactionLogKey(transactional_id="x")
    assert decode_transaction_key(b"\0\x01\0\x01x") is None


def test_an_offset_has_the_bytes_of_kafka_39() -> None:
    value = OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9)

    stored = encode_stored(value, 3)

    assert stored == b"\0\x03" + bytes(7) + b"\x07" + b"\0\0\0\x02" + b"\0\x01m" + bytes(7) + b"\x09"
    assert decode_stored(OffsetCommitValue, stored) == value


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_read(version: int) -> None:
    member = MemberMetadata(member_id="m", client_id="c", client_host="/1.2.3.4", session_timeout=10)
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol=None, leader=None, members=[member]
    )

    assert decode_stored(GroupMetadataValue, encode_stored(value, version)) == value


def test_a_transaction_may_have_no_partitions_or_an_empty_list_of_them() -> None:
    for partitions in (None, []):
        value = TransactionLogValue(producer_id=5, transaction_partitions=partitions)
        assert decode_stored(TransactionLogValue, encode_stored(value, 0)) == value


@pytest.mark.parametrize("stored", [b"", b"\0", b"\0\x63", b"\xff\xff", b"\0\x03\0"])
def test_what_is_stored_but_no_value_is_malformed(stored: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_stored(OffsetCommitValue, stored)


def test_a_subscription_of_a_version_to_come_is_read_as_far_as_we_know() -> None:
    subscription = ConsumerProtocolSubscription(topics=("a", "b"), generation_id=3, rack_id="r")
    blob = b"\0\x09" + encode_blob(subscription, 3)[2:] + b"what comes behind"

    assert decode_subscription(blob) == subscription


def test_old_subscriptions_have_no_owned_partitions() -> None:
    owned = [TopicPartitions(topic="a", partitions=(1, 2))]
    subscription = ConsumerProtocolSubscription(topics=("a",), owned_partitions=owned)

    assert decode_subscription(encode_blob(subscription, 0)).owned_partitions == []
    assert decode_subscription(encode_blob(subscription, 1)).owned_partitions == owned


def test_no_bytes_are_an_empty_assignment_but_no_subscription() -> None:
    assert decode_assignment(b"") == ConsumerProtocolAssignment()
    for blob in (b"", b"\0", b"\xff\xff"):
        with pytest.raises(MalformedRequest):
            decode_subscription(blob)
