"""Configs altered, producer ids, coordinators, transaction markers, groups elsewhere, and what is refused."""

from __future__ import annotations

from typing import Any

from ottla.wire.apis import (
    alter_configs,
    describe_acls,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from ottla.wire.apis import incremental_alter_configs as incremental
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.apis.delete_groups import DeleteGroupsRequest
from ottla.wire.apis.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.list_groups import ListGroupsRequest
from ottla.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.differential.batches_to_send import a_batch
from support.differential.cases.metadata import describe_configs
from support.differential.cases.produce import end_offset, produce, read_back
from support.differential.talk import Cases, Talk

CASES = Cases()
TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(
    talk: Talk, kind: int, name: str, configs: dict[str, str | None], *, only_check: bool = True
) -> None:
    entries = [alter_configs.AlterableConfig(key, value) for key, value in configs.items()]
    resource = alter_configs.AlterConfigsResource(kind, name, entries)
    request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=only_check)
    talk.ask(request, 2, note=str(configs))


def alter_some(
    talk: Talk, kind: int, name: str, *changes: tuple[str, int, str | None], only_check: bool = True
) -> None:
    entries = [incremental.AlterableConfig(key, operation, value) for key, operation, value in changes]
    resource = incremental.AlterConfigsResource(kind, name, entries)
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=only_check)
    talk.ask(request, 1, note=str(changes))


@CASES.add_for(
    ("retention.ms", "1000"),
    ("retention.ms", "soon"),
    ("retention.ms", None),
    ("segment.bytes", "3"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "burn"),
    ("nonsense", "1"),
    ("max.message.bytes", "-1"),
    ("compression.type", "brotli"),
    ("min.insync.replicas", "0"),
    ("message.timestamp.type", "Never"),
    ("unclean.leader.election.enable", "maybe"),
    ("message.format.version", "banana"),
    ("message.format.version", "2.8.1"),
    ("compression.gzip.level", "0"),
    ("compression.gzip.level", "-1"),
    ("remote.log.copy.disable", "true"),
    ("remote.log.delete.on.disable", "true"),
)
def alter_configs_of_a_topic(talk: Talk, setting: tuple[str, str | None]) -> None:
    key, value = setting
    alter(talk, TOPIC, talk.topic("packed"), {key: value})
    alter_some(talk, TOPIC, talk.topic("packed"), (key, SET, value))


@CASES.add_for(
    ("nobody", TOPIC), ("", TOPIC), ("a/b", TOPIC), ("x", BROKER), ("99", BROKER), ("any", 99), ("any", 0)
)
def alter_configs_of_resource(talk: Talk, resource: tuple[str, int]) -> None:
    name, kind = resource
    alter(talk, kind, name, {"retention.ms": "1000"})
    alter_some(talk, kind, name, ("retention.ms", SET, "1000"))


@CASES.add_for(
    ("log.retention.ms", "0"),
    ("log.retention.ms", "-1"),
    ("log.roll.ms", "0"),
    ("log.roll.ms", "-5"),
    ("log.roll.jitter.ms", "-1"),
    ("log.cleaner.threads", "0"),
    ("log.cleaner.threads", "100"),
    ("num.replica.fetchers", "0"),
    ("num.replica.fetchers", "1000000"),
    ("num.io.threads", "1000"),
    ("num.network.threads", "1000"),
    ("max.connections", "0"),
    ("max.connections.per.ip", "0"),
    ("max.connections.per.ip.overrides", "no host:3"),
    ("ssl.keystore.password", "secret"),
    ("ssl.keystore.location", "/nowhere"),
    ("my.own", "x"),
)
def alter_configs_of_a_broker(talk: Talk, setting: tuple[str, str]) -> None:
    key, value = setting
    for name in (str(talk.target.node_id), ""):
        alter(talk, BROKER, name, {key: value})
        alter_some(talk, BROKER, name, (key, SET, value))


@CASES.add
def alter_configs_of_one_listener_of_all_brokers(talk: Talk) -> None:
    for key in ("ssl.keystore.location", "anything", "max.connections"):
        alter_some(talk, BROKER, "", (f"listener.name.inside.{key}", SET, "5"))


@CASES.add
def alter_configs_with_an_unknown_operation_and_a_name_twice(talk: Talk) -> None:
    alter_some(talk, BROKER, str(talk.target.node_id), ("log.retention.ms", 9, "1"))
    twice = [alter_configs.AlterableConfig("retention.ms", value) for value in ("1", "2")]
    resource = alter_configs.AlterConfigsResource(TOPIC, talk.topic("packed"), twice)
    talk.ask(alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True), 2)


@CASES.add
def alter_levels_of_loggers(talk: Talk) -> None:
    name = str(talk.target.node_id)
    for change in (
        ("root", SET, "INFO"),
        ("root", SET, "LOUD"),
        ("root", DELETE, None),
        ("root", APPEND, "INFO"),
        ("root", 9, "INFO"),
        ("no.such.logger", SET, "INFO"),
        ("no.such.logger", DELETE, None),
    ):
        alter_some(talk, LOGGER, name, change)
    alter_some(talk, LOGGER, "x", ("root", SET, "INFO"))
    alter(talk, LOGGER, name, {"root": "INFO"})


@CASES.add
def alter_configs_step_by_step(talk: Talk) -> None:
    name = talk.topic("packed")
    policy = "cleanup.policy"
    for changes in (
        (("retention.ms", SET, "123456"),),
        ((policy, APPEND, "compact"),),
        ((policy, SUBTRACT, "delete"),),
        (("retention.ms", APPEND, "1"),),
        (("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        (("retention.ms", 9, "1"),),
        (("retention.ms", DELETE, None),),
        (("compression.type", DELETE, None),),
    ):
        alter_some(talk, TOPIC, name, *changes)


@CASES.add
def alter_configs_and_read_them(talk: Talk) -> None:
    name = talk.topic("tiny")
    alter_some(
        talk, TOPIC, name, ("retention.ms", SET, "777000"), ("flush.ms", SET, "60000"), only_check=False
    )
    describe_configs(talk, TOPIC, name, ("retention.ms", "flush.ms", "max.message.bytes"))


@CASES.add_for(*range(6))
def init_producer_id_in_version(talk: Talk, version: int) -> None:
    answer = talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), version)
    while answer is not None and answer.error_code == 14:  # the broker is fetching its block of ids
        talk.answers.pop()
        answer = talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), version)


@CASES.add_for((7, -1), (7, 3), (-1, 3))
def init_producer_id_given(talk: Talk, given: tuple[int, int]) -> None:
    producer_id, epoch = given
    request = InitProducerIdRequest(None, 1_000, producer_id, epoch)
    talk.ask(request, 4, note=str(given))


@CASES.add_for(*range(7))
def find_coordinator_in_version(talk: Talk, version: int) -> None:
    for kind in (0, 1, 2) if version else (0,):
        if version >= 4:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("a-group", "another"))
        else:
            request = FindCoordinatorRequest(key="a-group", key_type=kind)
        talk.ask(request, version, note=f"key type {kind}")


def write_marker(
    talk: Talk, epoch: int, *, commit: bool, coordinator_epoch: int = 0, topics: Any = None
) -> None:
    own = [WritableTxnMarkerTopic(talk.topic(), (talk.partition,))]
    marker = WritableTxnMarker(3_000, epoch, commit, own if topics is None else topics, coordinator_epoch)
    for version in (1,):
        talk.ask(
            WriteTxnMarkersRequest(markers=[marker]), version, note=f"epoch {epoch}, {coordinator_epoch}"
        )


@CASES.add
def write_txn_markers_for_a_producer_that_wrote_nothing(talk: Talk) -> None:
    write_marker(talk, 2, commit=True)
    write_marker(talk, 1, commit=True)
    write_marker(talk, 3, commit=False, coordinator_epoch=5)
    write_marker(talk, 3, commit=False, coordinator_epoch=4)
    produce(talk, a_batch(producer=(3_000, 3, 5)))
    produce(talk, a_batch(producer=(3_000, 3, 0)))
    produce(talk, a_batch(producer=(3_000, 2, 0)))
    read_back(talk)
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(talk.topic(), (talk.partition,))]), 0)


@CASES.add
def write_txn_markers_where_nothing_is(talk: Talk) -> None:
    wanted = [
        WritableTxnMarkerTopic("nobody", (0,)),
        WritableTxnMarkerTopic(talk.topic(), (99_999,)),
        WritableTxnMarkerTopic(talk.target.the_peer.topic("plain"), (0,)),
    ]
    write_marker(talk, 0, commit=True, topics=wanted)
    talk.ask(WriteTxnMarkersRequest(), 1, note="none")
    end_offset(talk)


GROUP_REQUESTS: dict[str, Any] = {
    "JoinGroup": join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol("range", b"")],
    ),
    "SyncGroup": sync_group.SyncGroupRequest(group_id="g", generation_id=1, member_id="m"),
    "Heartbeat": heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
    "LeaveGroup": leave_group.LeaveGroupRequest(group_id="g", members=[leave_group.MemberIdentity("m")]),
    "OffsetCommit": offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic("nobody", [offset_commit.OffsetCommitRequestPartition()])
        ],
    ),
    "OffsetFetch": offset_fetch.OffsetFetchRequest(
        groups=[offset_fetch.OffsetFetchRequestGroup("g", topics=None)]
    ),
    "DescribeGroups": describe_groups.DescribeGroupsRequest(groups=("g", "")),
    "DeleteGroups": DeleteGroupsRequest(groups_names=("g", "")),
    "OffsetDelete": OffsetDeleteRequest(
        group_id="g", topics=[OffsetDeleteRequestTopic("nobody", [OffsetDeleteRequestPartition(0)])]
    ),
    "ListGroups": ListGroupsRequest(),
}


@CASES.add_for(*GROUP_REQUESTS)
def the_group_is_coordinated_elsewhere(talk: Talk, name: str) -> None:
    request = GROUP_REQUESTS[name]
    talk.ask(request, request.spec.versions[1])


@CASES.add_for(0, 1, 2, 3)
def describe_acls_without_an_authorizer(talk: Talk, version: int) -> None:
    request = describe_acls.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    talk.ask(request, version)


@CASES.add
def alter_replica_log_dirs(talk: Talk) -> None:
    own = [
        AlterReplicaLogDirTopic(talk.topic(), (talk.partition, 99_999)),
        AlterReplicaLogDirTopic("nobody", (0,)),
    ]
    talk.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir("/no/such/directory", own)]), 2)
