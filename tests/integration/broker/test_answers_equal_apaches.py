"""The same request to an Ottla and an Apache broker of one cluster: the same answer, field by field.

The requests are those that are not about records: metadata, versions, settings, coordinators, bad frames.
Where an answer may differ, the difference is listed with its reason.
"""

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

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
from support.apache import ApacheCluster, apache_cluster
from support.ottla_broker import OttlaBroker
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.apache, pytest.mark.java]

TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)
HUNG_UP = "hung up"
NOT_SERVED = {
    58: "Envelope is KRaft's",
    68: "never served in ZooKeeper mode",
    69: "never served in ZooKeeper mode",
}
"""APIs that Apache advertises and Ottla does not, and why."""


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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApacheCluster, OttlaBroker]]:
    directory = tmp_path_factory.mktemp("equal")
    with apache_cluster(directory, size=1, first_id=0) as apache:
        ottla = OttlaBroker(1, apache.zk_connect, log_dir=directory / "ottla" / "data")
        try:
            ottla.start({0, 1})
            at_apache = AdminClient({"bootstrap.servers": apache.bootstrap, "log_level": 0})
            made = at_apache.create_topics([NewTopic("orders", 3, 2), NewTopic("__consumer_offsets", 5, 1)])
            for topic in made.values():
                topic.result(30)
            _wait_until_both_know(apache, ottla)
            yield apache, ottla
        finally:
            ottla.stop()


def _wait_until_both_know(apache: ApacheCluster, ottla: OttlaBroker) -> None:
    request = md.MetadataRequest(topics=None)
    wait_until(
        lambda: all(
            sum(len(row.partitions) for row in _asked(address, request, 12).topics) == 8
            for address in (apache.bootstrap, ottla.address)
        ),
        "both brokers know all partitions",
        30,
    )


def _asked(address: str, request: Any, version: int) -> Any:
    with WireClient(address) as client:
        return client.ask(request, version)


def _answer(address: str, request: Any, version: int) -> Any:
    """The answer as plain values, lists in an order of their own: neither broker promises one."""
    return _plain(_asked(address, request, version))


def _plain(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case list():
            return sorted((_plain(each) for each in value), key=repr)
        case _:
            return value


def _without_what_may_differ(request: Any, answer: Any) -> Any:
    if isinstance(request, ApiVersionsRequest):
        answer["api_keys"] = [row for row in answer["api_keys"] if row["api_key"] not in NOT_SERVED]
    return answer


@pytest.mark.parametrize(
    ("request_", "version"),
    [pytest.param(*case, id=f"{type(case[0]).__name__}-{case[1]}-{i}") for i, case in enumerate(REQUESTS)],
)
def test_the_answer_is_apaches(
    cluster: tuple[ApacheCluster, OttlaBroker], request_: Any, version: int
) -> None:
    apache, ottla = cluster

    theirs = _without_what_may_differ(request_, _answer(apache.bootstrap, request_, version))
    ours = _without_what_may_differ(request_, _answer(ottla.address, request_, version))

    assert ours == theirs


@pytest.mark.parametrize("frame", FRAMES)
def test_a_bad_frame_is_treated_as_apache_treats_it(
    cluster: tuple[ApacheCluster, OttlaBroker], frame: bytes
) -> None:
    answers = []
    for address in (cluster[0].bootstrap, cluster[1].address):
        with WireClient(address) as client:
            client.send_bytes(frame)
            answers.append(client.read_frame() or HUNG_UP)

    assert answers[1] == answers[0]


def test_a_brokers_settings_have_apaches_names_types_defaults_and_scopes(
    cluster: tuple[ApacheCluster, OttlaBroker],
) -> None:
    apache, ottla = cluster

    theirs, ours = (
        {row.name: row for row in _asked(address, described(BROKER, name), 4).results[0].configs}
        for address, name in ((apache.bootstrap, "0"), (ottla.address, "1"))
    )

    assert {name for name in ours if not name.startswith("ottla.")} == set(theirs)
    for name, row in theirs.items():
        mine = ours[name]
        assert (mine.config_type, mine.read_only, mine.is_sensitive) == (
            row.config_type,
            row.read_only,
            row.is_sensitive,
        ), name
        if row.config_source == mine.config_source == 5:
            assert mine.value == row.value, name
