"""Access rules as Kafka keeps them in ZooKeeper."""

from __future__ import annotations

import pytest

from ottla.security.acls.kinds import Entry, Operation, PatternType, Permission, Resource, ResourceType
from ottla.znodes import codec_acl
from ottla.znodes.codec import MalformedZnode

BOB_READS = Entry("User:bob", "*", Operation.READ, Permission.ALLOW)
BOBS_NODE = (
    b'{"acls":[{"principal":"User:bob","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}'
)


def test_a_rule_is_written_as_apache_writes_it_and_read_again() -> None:
    assert codec_acl.encode([BOB_READS]) == BOBS_NODE
    assert codec_acl.decode(BOBS_NODE, "t") == {BOB_READS}
    assert codec_acl.decode(b"", "t") == frozenset()


@pytest.mark.parametrize("operation", ["IdempotentWrite", "IDEMPOTENT_WRITE", "idempotentwrite"])
def test_words_are_read_in_any_case(operation: str) -> None:
    data = BOBS_NODE.replace(b"Read", operation.encode())
    assert codec_acl.decode(data, "t") == {BOB_READS._replace(operation=Operation.IDEMPOTENT_WRITE)}


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b'{"version":2,"acls":[]}',
        b'{"acls":[]}',
        BOBS_NODE.replace(b"Read", b"Any"),
        BOBS_NODE.replace(b"Allow", b"Maybe"),
    ],
)
def test_what_kafka_would_not_have_written_is_told_and_not_half_read(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="of topic t"):
        codec_acl.decode(data, "rules of topic t")


@pytest.mark.parametrize(
    ("resource", "path", "note"),
    [
        (
            Resource(ResourceType.TRANSACTIONAL_ID, "x:y"),
            "/kafka-acl/TransactionalId/x:y",
            ("/kafka-acl-changes", b"TRANSACTIONAL_ID:x:y"),
        ),
        (
            Resource(ResourceType.TOPIC, "pre", PatternType.PREFIXED),
            "/kafka-acl-extended/prefixed/Topic/pre",
            (
                "/kafka-acl-extended-changes",
                b'{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}',
            ),
        ),
    ],
)
def test_a_resource_has_its_path_and_its_note(resource: Resource, path: str, note: tuple[str, bytes]) -> None:
    prefix, data = codec_acl.change_note(resource)
    assert codec_acl.path(resource) == path
    assert (prefix.rpartition("/")[0], data) == note
    assert codec_acl.decode_change(data, note[0]) == resource


@pytest.mark.parametrize("data", [b"", b"TOPIC", b"MOON:x"])
def test_a_note_that_names_nothing_is_told(data: bytes) -> None:
    with pytest.raises(MalformedZnode):
        codec_acl.decode_change(data, codec_acl.LITERAL_CHANGES)
