"""One request of every kind that needs a right, and what it needs: the same for the bench and for brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.broker.access.access import parse_rights
from ottla.broker.apis import APIS, Api
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.record import Record
from ottla.security.acls.kinds import (
    CLUSTER_NAME,
    WILDCARD,
    Entry,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from ottla.wire.apis import incremental_alter_configs as incremental
from ottla.wire.apis import message_classes
from ottla.wire.apis.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from ottla.wire.apis.alter_client_quotas import EntityData, OpData, RequestEntryData
from ottla.wire.apis.alter_configs import AlterableConfig, AlterConfigsResource
from ottla.wire.apis.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from ottla.wire.apis.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from ottla.wire.apis.alter_user_scram_credentials import ScramCredentialDeletion
from ottla.wire.apis.create_acls import AclCreation
from ottla.wire.apis.create_partitions import CreatePartitionsTopic
from ottla.wire.apis.create_topics import CreatableTopic
from ottla.wire.apis.delete_acls import DeleteAclsFilter
from ottla.wire.apis.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from ottla.wire.apis.delete_topics import DeleteTopicState
from ottla.wire.apis.describe_configs import DescribeConfigsResource
from ottla.wire.apis.describe_log_dirs import DescribableLogDirTopic
from ottla.wire.apis.describe_producers import TopicRequest
from ottla.wire.apis.describe_user_scram_credentials import UserName
from ottla.wire.apis.elect_leaders import TopicPartitions
from ottla.wire.apis.fetch import FetchPartition, FetchTopic
from ottla.wire.apis.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrTopicState
from ottla.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from ottla.wire.apis.list_partition_reassignments import ListPartitionReassignmentsTopics
from ottla.wire.apis.metadata import MetadataRequestTopic
from ottla.wire.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.apis.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from ottla.wire.apis.produce import PartitionProduceData, TopicProduceData
from ottla.wire.apis.stop_replica import StopReplicaPartitionState, StopReplicaTopicState
from ottla.wire.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from ottla.wire.apis.update_features import FeatureUpdateKey
from ottla.wire.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from ottla.wire.keys import ApiKey

TOPIC, GROUP, TRANSACTION = "orders", "group-1", "txn-1"
NOT_THERE, GROUP_NOT_THERE = "orders-not-there", "group-not-there"
TOPIC_ID = bytes(range(16))
TOPIC_KIND, BROKER_KIND = 2, 4
K = ApiKey


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and by their places which of the needs of its API's row it has."""

    key: ApiKey
    version: int
    fields: dict[str, Any]
    needs: tuple[int, ...]
    label: str = ""

    def __str__(self) -> str:
        return f"{self.key.spelling}-{self.version}{self.label}"

    def message(self) -> Any:
        """A fresh one: whoever takes it may change it."""
        made = message_classes(self.key)[0](**{name: make() for name, make in self.fields.items()})
        return made

    def clauses(self) -> list[list[tuple[ResourceType, Operation]]]:
        """Of each inner list one right is enough."""
        rows = row_of(self.key).needs.split(", ")
        return [list(parse_rights(rows[place])) for place in self.needs]


def row_of(key: ApiKey) -> Api:
    return next(api for api in APIS if api.key == key)


def ask(key: ApiKey, version: int, needs: tuple[int, ...] = (0,), label: str = "", /, **fields: Any) -> Ask:
    made = {name: value if callable(value) else partial(_same, value) for name, value in fields.items()}
    return Ask(key, version, made, needs, label)


def _same(value: Any) -> Any:
    return value


def records(*, is_transactional: bool = False) -> bytearray:
    """One batch with one record."""
    more = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0} if is_transactional else {}
    return build_batch(
        [Record(None, b"x", timestamp=1_700_000_000_000)],
        codec=Codec.NONE,
        is_transactional=is_transactional,
        **more,
    )


def _produced(*, is_transactional: bool = False) -> Callable[[], list[TopicProduceData]]:
    return lambda: [
        TopicProduceData(
            name=TOPIC,
            partition_data=[PartitionProduceData(records=records(is_transactional=is_transactional))],
        )
    ]


def _fetched() -> list[FetchTopic]:
    return [FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])]


def _broker_config(kind: int, name: str) -> Callable[[], list[Any]]:
    return lambda: [DescribeConfigsResource(kind, name, ("retention.ms", "default.replication.factor"))]


def _altered(kind: int, name: str, key: str) -> list[Any]:
    return [AlterConfigsResource(kind, name, [AlterableConfig(key, "2")])]


def _altered_one_by_one(kind: int, name: str, key: str) -> list[Any]:
    return [incremental.AlterConfigsResource(kind, name, [incremental.AlterableConfig(key, 0, "2")])]


MEMBER = {"group_id": GROUP, "member_id": "nobody"}
PRODUCER = {"producer_id": 7, "producer_epoch": 0}
STALE = {"controller_id": 9, "controller_epoch": 0, "broker_epoch": 0}

ASKS: tuple[Ask, ...] = (
    *(ask(K.PRODUCE, version, acks=1, timeout_ms=1000, topic_data=_produced()) for version in (3, 9, 11)),
    ask(
        K.PRODUCE, 9, (0, 1), "-transactional", transactional_id=TRANSACTION, acks=-1, timeout_ms=1000,
        topic_data=_produced(is_transactional=True),
    ),
    *(
        ask(K.FETCH, version, max_wait_ms=0, max_bytes=1000, replica_id=-1, session_epoch=-1, topics=_fetched)
        for version in (4, 11, 12)
    ),
    ask(K.FETCH, 12, (1,), "-follower", max_wait_ms=0, max_bytes=1000, replica_id=1, session_epoch=-1,
        topics=_fetched),
    *(
        ask(
            K.LIST_OFFSETS, version, replica_id=-1,
            topics=lambda: [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(timestamp=-1)])],
        )
        for version in (0, 1, 7)
    ),
    *(ask(K.METADATA, version, topics=lambda: [MetadataRequestTopic(name=TOPIC)],
          allow_auto_topic_creation=False) for version in (4, 9, 12)),
    ask(K.METADATA, 9, (0,), "-missing", topics=lambda: [MetadataRequestTopic(name=NOT_THERE)],
        allow_auto_topic_creation=False),
    ask(
        K.LEADER_AND_ISR, 7, **STALE,
        topic_states=lambda: [
            LeaderAndIsrTopicState(TOPIC, TOPIC_ID, [LeaderAndIsrPartitionState(partition_index=0)])
        ],
    ),
    ask(
        K.LEADER_AND_ISR, 2, **STALE,
        topic_states=lambda: [
            LeaderAndIsrTopicState(TOPIC, partition_states=[LeaderAndIsrPartitionState()])
        ],
    ),
    ask(K.STOP_REPLICA, 4, **STALE,
        topic_states=lambda: [StopReplicaTopicState(TOPIC, [StopReplicaPartitionState()])]),
    ask(K.UPDATE_METADATA, 8, **STALE),
    ask(K.CONTROLLED_SHUTDOWN, 3, broker_id=99, broker_epoch=0),
    *(
        ask(
            K.OFFSET_COMMIT, version, (0, 1), group_id=GROUP,
            topics=lambda: [OffsetCommitRequestTopic(TOPIC, [OffsetCommitRequestPartition(0, 1)])],
        )
        for version in (2, 8)
    ),
    *(
        ask(K.OFFSET_FETCH, version, (0, 1), group_id=GROUP,
            topics=lambda: [OffsetFetchRequestTopic(TOPIC, (0,))])
        for version in (0, 1, 2, 7)
    ),
    ask(
        K.OFFSET_FETCH, 8, (0, 1),
        groups=lambda: [OffsetFetchRequestGroup(GROUP, topics=[OffsetFetchRequestTopics(TOPIC, (0,))])],
    ),
    ask(K.FIND_COORDINATOR, 3, key=GROUP, key_type=0),
    ask(K.FIND_COORDINATOR, 4, coordinator_keys=(GROUP,), key_type=0),
    ask(K.FIND_COORDINATOR, 3, (1,), "-transaction", key=TRANSACTION, key_type=1),
    ask(K.FIND_COORDINATOR, 4, (1,), "-transaction", coordinator_keys=(TRANSACTION,), key_type=1),
    ask(K.JOIN_GROUP, 5, group_id=GROUP, member_id="nobody", session_timeout_ms=10_000,
        protocol_type="consumer"),
    ask(K.JOIN_GROUP, 7, group_id=GROUP, member_id="nobody", session_timeout_ms=10_000,
        protocol_type="consumer"),
    ask(K.HEARTBEAT, 3, **MEMBER),
    ask(K.LEAVE_GROUP, 2, **MEMBER),
    ask(K.LEAVE_GROUP, 4, group_id=GROUP),
    ask(K.SYNC_GROUP, 3, **MEMBER),
    ask(K.DESCRIBE_GROUPS, 3, groups=(GROUP,), include_authorized_operations=True),
    ask(K.LIST_GROUPS, 4),
    ask(K.CREATE_TOPICS, 7, (0, 1), topics=lambda: [CreatableTopic(NOT_THERE, 1, 1)], validate_only=True),
    ask(K.CREATE_TOPICS, 4, topics=lambda: [CreatableTopic(NOT_THERE, 1, 1)], validate_only=True),
    ask(K.DELETE_TOPICS, 5, topic_names=(NOT_THERE,), timeout_ms=1000),
    ask(K.DELETE_TOPICS, 6, topics=lambda: [DeleteTopicState(name=NOT_THERE)], timeout_ms=1000),
    ask(K.DELETE_RECORDS, 2, timeout_ms=1000,
        topics=lambda: [DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, 0)])]),
    ask(K.INIT_PRODUCER_ID, 4, transactional_id=TRANSACTION, transaction_timeout_ms=1000),
    ask(K.INIT_PRODUCER_ID, 4, (1,), "-idempotent", transactional_id=None, transaction_timeout_ms=1000),
    ask(
        K.OFFSET_FOR_LEADER_EPOCH, 3, replica_id=-1,
        topics=lambda: [OffsetForLeaderTopic(TOPIC, [OffsetForLeaderPartition(0, -1, 0)])],
    ),
    ask(
        K.ADD_PARTITIONS_TO_TXN, 3, (0, 1), v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=7, v3_and_below_producer_epoch=0,
        v3_and_below_topics=lambda: [
            AddPartitionsToTxnTopic(TOPIC, (0,)),
            AddPartitionsToTxnTopic(NOT_THERE, (0,)),
        ],
    ),
    ask(
        K.ADD_PARTITIONS_TO_TXN, 4, (2,),
        transactions=lambda: [
            AddPartitionsToTxnTransaction(TRANSACTION, 7, 0, True, [AddPartitionsToTxnTopic(TOPIC, (0,))])
        ],
    ),
    ask(K.ADD_OFFSETS_TO_TXN, 3, (0, 1), transactional_id=TRANSACTION, group_id=GROUP, **PRODUCER),
    ask(K.END_TXN, 3, transactional_id=TRANSACTION, **PRODUCER),
    ask(
        K.WRITE_TXN_MARKERS, 1,
        markers=lambda: [WritableTxnMarker(7, 0, False, [WritableTxnMarkerTopic(NOT_THERE, (0,))])],
    ),
    ask(
        K.TXN_OFFSET_COMMIT, 3, (0, 1, 2), transactional_id=TRANSACTION, group_id=GROUP, **PRODUCER,
        topics=lambda: [
            TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(0, 1)]),
            TxnOffsetCommitRequestTopic(NOT_THERE, [TxnOffsetCommitRequestPartition(0, 1)]),
        ],
    ),
    ask(K.DESCRIBE_ACLS, 3, resource_type_filter=7, resource_name_filter="nobody", pattern_type_filter=3,
        principal_filter=None, host_filter=None, operation=1, permission_type=1),
    ask(K.CREATE_ACLS, 3, creations=lambda: [AclCreation(4, "moon", 3, "User:eve", "*", 3, 3)]),
    ask(K.DELETE_ACLS, 3, filters=lambda: [DeleteAclsFilter(7, "nobody", 3, None, None, 1, 1)]),
    ask(K.DESCRIBE_CONFIGS, 4, resources=_broker_config(TOPIC_KIND, TOPIC)),
    ask(K.DESCRIBE_CONFIGS, 4, (1,), "-broker", resources=_broker_config(BROKER_KIND, "1")),
    *(
        ask(key, version, needs, label, validate_only=True, resources=partial(make, *resource))
        for key, version, make in (
            (K.ALTER_CONFIGS, 2, _altered),
            (K.INCREMENTAL_ALTER_CONFIGS, 1, _altered_one_by_one),
        )
        for needs, label, resource in (
            ((0,), "", (TOPIC_KIND, TOPIC, "retention.ms")),
            ((1,), "-broker", (BROKER_KIND, "1", "log.cleaner.threads")),
        )
    ),
    ask(K.ALTER_REPLICA_LOG_DIRS, 2,
        dirs=lambda: [AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(TOPIC, (0,))])]),
    ask(K.DESCRIBE_LOG_DIRS, 4, topics=lambda: [DescribableLogDirTopic(NOT_THERE, (0,))]),
    ask(K.DESCRIBE_LOG_DIRS, 1, topics=lambda: [DescribableLogDirTopic(NOT_THERE, (0,))]),
    ask(K.CREATE_PARTITIONS, 3, timeout_ms=1000, validate_only=True,
        topics=lambda: [CreatePartitionsTopic(TOPIC, 1, None)]),
    ask(K.DELETE_GROUPS, 2, groups_names=(GROUP_NOT_THERE,)),
    ask(K.ELECT_LEADERS, 2, topic_partitions=lambda: [TopicPartitions(NOT_THERE, (0,))], timeout_ms=1000),
    ask(K.ALTER_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000,
        topics=lambda: [ReassignableTopic(NOT_THERE, [ReassignablePartition(0, (1,))])]),
    ask(K.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000,
        topics=lambda: [ListPartitionReassignmentsTopics(TOPIC, (0,))]),
    ask(K.OFFSET_DELETE, 0, (0, 1), group_id=GROUP,
        topics=lambda: [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(5)])]),
    ask(K.DESCRIBE_CLIENT_QUOTAS, 1),
    ask(
        K.ALTER_CLIENT_QUOTAS, 1, validate_only=True,
        entries=lambda: [
            RequestEntryData([EntityData("user", "nobody")], [OpData("producer_byte_rate", 1.0, False)])
        ],
    ),
    ask(K.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=lambda: [UserName("nobody")]),
    ask(K.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=lambda: [ScramCredentialDeletion("nobody", 1)]),
    ask(K.ALTER_PARTITION, 3, broker_id=99, broker_epoch=0),
    ask(K.UPDATE_FEATURES, 1, feature_updates=lambda: [FeatureUpdateKey("nothing", 1)], timeout_ms=1000),
    ask(K.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1),
    ask(K.DESCRIBE_PRODUCERS, 0, topics=lambda: [TopicRequest(TOPIC, (0,))]),
    ask(K.DESCRIBE_TRANSACTIONS, 0, transactional_ids=(TRANSACTION,)),
    ask(K.LIST_TRANSACTIONS, 1),
    ask(K.ALLOCATE_PRODUCER_IDS, 0, broker_id=99, broker_epoch=0),
)  # fmt: skip

NOT_ASKED = {
    (K.METADATA, 1): "a topic would be created; a test of its own",
    (K.DELETE_TOPICS, 1): "by its id alone; a test of its own",
    (K.DESCRIBE_TRANSACTIONS, 1): "needs an open transaction; a test of its own",
}
"""Needs that no question has, and why."""

NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TRANSACTION,
    ResourceType.CLUSTER: CLUSTER_NAME,
}
PATTERNS = ("literal", "prefixed", "wildcard")


def resources(kind: ResourceType, pattern: str) -> list[Resource]:
    """What covers all names of that type that the questions have."""
    name = NAMES[kind]
    if kind is ResourceType.CLUSTER:  # it has but one name, and no broker takes another
        return [Resource(kind, name, PatternType.PREFIXED if pattern == "prefixed" else PatternType.LITERAL)]
    if pattern == "prefixed":
        return [Resource(kind, name[:3], PatternType.PREFIXED)]
    if pattern == "wildcard":
        return [Resource(kind, WILDCARD)]
    more = {ResourceType.TOPIC: [NOT_THERE], ResourceType.GROUP: [GROUP_NOT_THERE]}
    return [Resource(kind, each) for each in (name, *more.get(kind, ()))]


def another(kind: ResourceType, operation: Operation) -> Operation:
    """A right to the same thing that is not enough."""
    enough = {Operation.DESCRIBE: Operation.CREATE, Operation.DESCRIBE_CONFIGS: Operation.DESCRIBE}
    return enough.get(operation, Operation.DESCRIBE_CONFIGS)


@dataclass(frozen=True, slots=True)
class Setting:
    """Rules to try a question under, and whether they refuse it."""

    name: str
    rules: tuple[tuple[Resource, Entry], ...]
    is_allowed: bool

    def __str__(self) -> str:
        return self.name


def settings(question: Ask, principal: str) -> Iterator[Setting]:
    """No rule; all that is needed, by each kind of pattern; each need missing, denied, or replaced by
    another right."""

    def rules(
        rights: list[tuple[ResourceType, Operation]], pattern: str, permission: Permission
    ) -> tuple[tuple[Resource, Entry], ...]:
        return tuple(
            (resource, Entry(principal, "*", operation, permission))
            for kind, operation in rights
            for resource in resources(kind, pattern)
        )

    clauses = question.clauses()
    yield Setting("no rule", (), False)
    firsts = [clause[0] for clause in clauses]
    allow, deny = Permission.ALLOW, Permission.DENY
    for pattern in PATTERNS:
        yield Setting(f"allow {pattern}", rules(firsts, pattern, allow), True)
    for place, clause in enumerate(clauses):
        others = [each for other, each in enumerate(firsts) if other != place]
        kept = rules(others, "literal", allow)
        for right in clause:
            yield Setting(f"{_words(right)} alone", kept + rules([right], "literal", allow), True)
        wrong = [(kind, another(kind, operation)) for kind, operation in clause]
        if not any(each in firsts for each in wrong):
            yield Setting(
                f"another right for {_words(clause[0])}", kept + rules(wrong, "literal", allow), False
            )
        if others:
            yield Setting(f"{_words(clause[0])} missing", kept, False)
        for pattern in PATTERNS:
            all_rights = [*others, *clause]
            denied = rules(all_rights, "literal", allow) + rules(list(clause), pattern, deny)
            yield Setting(f"deny {_words(clause[0])} {pattern}", denied, False)


def _words(right: tuple[ResourceType, Operation]) -> str:
    return f"{right[0].title} {right[1].title}"
