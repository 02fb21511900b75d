"""Requests and bad frames to which both brokers must say the very same, about a topic that both know.

They are not about records: metadata, versions, settings, coordinators, security, and bytes of no request.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.wire.apis import alter_configs as ac
from ottla.wire.apis import describe_configs as dc
from ottla.wire.apis import incremental_alter_configs as ia
from ottla.wire.apis import metadata as md
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.apis.describe_acls import DescribeAclsRequest
from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest

TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)

AN_ACL = AclCreation(
    resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
)
ANY_ACL = DeleteAclsFilter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def topics(*names: str | None, topic_id: bytes = bytes(16)) -> list[md.MetadataRequestTopic]:
    return [md.MetadataRequestTopic(name=name, topic_id=topic_id) for name in names]


def described(kind: int, name: str, *keys: str, all_keys: bool = True) -> dc.DescribeConfigsRequest:
    resource = dc.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if all_keys and not keys else keys
    )
    return dc.DescribeConfigsRequest(resources=[resource])


def altered(kind: int, name: str, *rows: tuple[str, str | None]) -> ac.AlterConfigsRequest:
    configs = [ac.AlterableConfig(name=key, value=value) for key, value in rows]
    resource = ac.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return ac.AlterConfigsRequest(resources=[resource], validate_only=True)


def edited(kind: int, name: str, *rows: tuple[str, int, str | None]) -> ia.IncrementalAlterConfigsRequest:
    configs = [ia.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in rows]
    resource = ia.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return ia.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def every_version(last: int, request: Any, first: int = 0) -> list[tuple[Any, int]]:
    return [(request, version) for version in range(first, last + 1)]


REQUESTS: list[tuple[Any, int]] = [
    *every_version(12, md.MetadataRequest(topics=None), first=1),
    (md.MetadataRequest(topics=[]), 0),
    *every_version(12, md.MetadataRequest(topics=[]), first=1),
    *every_version(12, md.MetadataRequest(topics=topics("orders", "b@d", ""))),
    *every_version(
        12,
        md.MetadataRequest(topics=topics("orders", "nowhere"), allow_auto_topic_creation=False),
        first=4,
    ),
    *every_version(
        10,
        md.MetadataRequest(
            topics=None,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        ),
        first=8,
    ),
    *every_version(
        12, md.MetadataRequest(topics=topics("orders"), include_topic_authorized_operations=True), first=11
    ),
    *every_version(12, md.MetadataRequest(topics=topics(None, topic_id=b"7" * 16)), first=12),
    *every_version(12, md.MetadataRequest(topics=topics("orders", topic_id=b"7" * 16)), first=10),
    *every_version(12, md.MetadataRequest(topics=topics(None)), first=10),
    *every_version(1, DescribeClusterRequest()),
    *every_version(1, DescribeClusterRequest(include_cluster_authorized_operations=True)),
    *[(DescribeClusterRequest(endpoint_type=kind), 1) for kind in (0, 2, 3, 99)],
    *every_version(4, ApiVersionsRequest(client_software_name="x", client_software_version="1")),
    (ApiVersionsRequest(client_software_name="", client_software_version="1"), 3),
    (ApiVersionsRequest(client_software_name="a b", client_software_version="1"), 4),
    *every_version(3, FindCoordinatorRequest(key="g")),
    *every_version(6, FindCoordinatorRequest(coordinator_keys=("g", "h", "")), first=4),
    (FindCoordinatorRequest(key="g", key_type=9), 1),
    (FindCoordinatorRequest(coordinator_keys=("g",), key_type=9), 4),
    (FindCoordinatorRequest(coordinator_keys=()), 4),
    *every_version(4, described(TOPIC, "orders")),
    (described(TOPIC, "orders", "retention.ms", "nothing"), 4),
    (described(TOPIC, "orders", all_keys=False), 4),
    *[(described(TOPIC, name), 4) for name in ("nowhere", "b@d", "", "__consumer_offsets")],
    *[(described(kind, "x"), 4) for kind in (0, 1, 3, 5, METRICS, 32, 99)],
    (described(LOGGER, "x"), 4),
    (described(BROKER, ""), 4),
    (described(BROKER, "x"), 4),
    (altered(TOPIC, "orders", ("retention.ms", "5")), 2),
    (altered(TOPIC, "orders", ("retention.ms", "x")), 2),
    (altered(TOPIC, "orders", ("retention.ms", "-5")), 2),
    (altered(TOPIC, "orders", ("nothing", "x")), 2),
    (altered(TOPIC, "orders", ("retention.ms", None)), 2),
    (altered(TOPIC, "nowhere", ("retention.ms", "1")), 2),
    (altered(TOPIC, "b@d", ("retention.ms", "1")), 2),
    (altered(BROKER, "", ("log.retention.ms", "5")), 2),
    (altered(BROKER, "", ("num.partitions", "5")), 2),
    (altered(BROKER, "", ("log.retention.ms", "x")), 2),
    (altered(BROKER, "", ("nothing", "x")), 2),
    (altered(BROKER, "x", ("log.retention.ms", "5")), 2),
    *[(altered(kind, "x", ("a", "b")), 2) for kind in (0, 1, LOGGER, METRICS, 32)],
    (edited(TOPIC, "orders", ("retention.ms", SET, "5")), 1),
    (edited(TOPIC, "orders", ("retention.ms", DELETE, None)), 1),
    (edited(TOPIC, "orders", ("cleanup.policy", APPEND, "compact")), 1),
    (edited(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")), 1),
    (edited(TOPIC, "orders", ("retention.ms", APPEND, "5")), 1),
    (edited(TOPIC, "orders", ("retention.ms", SUBTRACT, "5")), 1),
    (edited(TOPIC, "orders", ("retention.ms", 9, "5")), 1),
    (edited(TOPIC, "orders", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")), 1),
    (edited(TOPIC, "orders", ("retention.ms", SET, None)), 1),
    (edited(TOPIC, "orders", ("nothing", SET, "5")), 1),
    (edited(TOPIC, "orders", ("nothing", DELETE, None)), 1),
    (edited(TOPIC, "orders"), 1),
    (edited(BROKER, "", ("log.retention.ms", SET, "77")), 1),
    (edited(BROKER, "", ("num.partitions", SET, "77")), 1),
    (edited(BROKER, "", ("leader.replication.throttled.rate", SET, "77")), 1),
    (InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), 4),
    (InitProducerIdRequest(transactional_id=None, producer_id=5), 4),
    (DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3),
    (CreateAclsRequest(creations=[AN_ACL, AN_ACL]), 3),
    (DeleteAclsRequest(filters=[ANY_ACL, ANY_ACL]), 3),
    *every_version(1, SaslHandshakeRequest(mechanism="PLAIN")),
    *every_version(2, SaslAuthenticateRequest(auth_bytes=b"x")),
    *every_version(3, CreateDelegationTokenRequest(max_lifetime_ms=1), first=1),
    *every_version(2, RenewDelegationTokenRequest(hmac=b"x")),
    *every_version(2, ExpireDelegationTokenRequest(hmac=b"x")),
    *every_version(3, DescribeDelegationTokenRequest(owners=None)),
    (UpdateMetadataRequest(controller_id=0, controller_epoch=0, broker_epoch=-1), 8),
    (UpdateMetadataRequest(controller_id=0, controller_epoch=99, broker_epoch=0), 8),
]


def a_frame(api_key: int, version: int, body: bytes = b"", tags: bytes = b"") -> bytes:
    frame = struct.pack(">hhih", api_key, version, 7, 1) + b"x" + tags + body
    return struct.pack(">i", len(frame)) + frame


FRAMES = [
    a_frame(18, 99, b"\0\0\0", tags=b"\0"),
    a_frame(18, 5, b"\2a\2b\0", tags=b"\0"),
    a_frame(18, -1),
    a_frame(99, 0),
    a_frame(-1, 0),
    a_frame(3, 13),
    a_frame(0, 12),
    a_frame(58, 0),
    a_frame(3, 1, b"\0\0"),
    a_frame(3, 1, struct.pack(">ih", 1, -5)),
    a_frame(3, 1, struct.pack(">i", 2**31 - 1)),
    a_frame(3, 0, struct.pack(">i", -1)),
    struct.pack(">i", 0),
    struct.pack(">i", -1),
    struct.pack(">i", 2**30),
]
