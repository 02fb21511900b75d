"""The one list of what this broker speaks: API, versions, handler, and the rights that its clients need.

A handler is a function ``handle(node, request, body)`` in a module of one of the rooms below. It returns the
response, or None when it parked the request or answered it itself. Modules and messages are imported when the
first request of their kind comes: an idle broker stays small.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ottla.broker.access.access import parse_rights
from ottla.wire.apis import message_classes
from ottla.wire.keys import ApiKey


class Api:
    """One line of the list; the versions are the advertised ones, both ends included."""

    __slots__ = (
        "_handler",
        "_plain",
        "handle",
        "key",
        "learn",
        "max_version",
        "min_version",
        "needs",
        "request",
        "rights",
    )

    def __init__(
        self,
        key: ApiKey,
        min_version: int,
        max_version: int,
        handler: str,
        rights: str,
        plain: str | None = None,
    ) -> None:
        """``handler`` is ``room.module`` or ``room.module:function``; without a name it is ``handle``.
        ``plain`` is the module whose ``learn`` looks at a request that was served, for others like it.

        ``rights`` are all that the API may ask for, in words: one of those between which ``or`` stands, and
        of those between commas each where the request has to do with it.
        """
        self.key = key
        self.min_version = min_version
        self.max_version = max_version
        self.request: Any = None
        self.handle: Callable[[Any, Any, Any], Any] = self._load_and_handle
        self.learn: Callable[[Any, Any, Any], None] | None = None
        self._handler = handler
        self._plain = plain
        self.needs = rights
        self.rights = parse_rights(rights)

    def load(self) -> None:
        """Import what the API needs."""
        module, _, function = self._handler.partition(":")
        self.request = message_classes(self.key)[0]
        self.handle = getattr(import_module(f"{__name__}.{module}"), function or "handle")
        if self._plain is not None:
            self.learn = import_module(f"{__name__}.{self._plain}").learn

    def _load_and_handle(self, node: Any, request: Any, body: Any) -> Any:
        raise AssertionError("an API is loaded before its first request is decoded")


APIS: tuple[Api, ...] = (
    Api(ApiKey.PRODUCE, 0, 11, "data.produce", "Topic Write, TransactionalId Write", "data.plain_produce"),
    Api(ApiKey.FETCH, 0, 17, "data.fetch", "Topic Read, Cluster ClusterAction"),
    Api(ApiKey.LIST_OFFSETS, 0, 9, "data.list_offsets", "Topic Describe"),
    Api(ApiKey.METADATA, 0, 12, "cluster.metadata", "Topic Describe, Cluster Create or Topic Create"),
    Api(ApiKey.LEADER_AND_ISR, 0, 7, "control.leader_and_isr", "Cluster ClusterAction"),
    Api(ApiKey.STOP_REPLICA, 0, 4, "control.stop_replica", "Cluster ClusterAction"),
    Api(ApiKey.UPDATE_METADATA, 0, 8, "control.update_metadata", "Cluster ClusterAction"),
    Api(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, "control.controlled_shutdown", "Cluster ClusterAction"),
    Api(ApiKey.OFFSET_COMMIT, 0, 9, "groups.offset_commit", "Group Read, Topic Read"),
    Api(ApiKey.OFFSET_FETCH, 0, 9, "groups.offset_fetch", "Group Describe, Topic Describe"),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, "groups.find_coordinator", "Group Describe, TransactionalId Describe"),
    Api(ApiKey.JOIN_GROUP, 0, 9, "groups.join_group", "Group Read"),
    Api(ApiKey.HEARTBEAT, 0, 4, "groups.heartbeat", "Group Read"),
    Api(ApiKey.LEAVE_GROUP, 0, 5, "groups.leave_group", "Group Read"),
    Api(ApiKey.SYNC_GROUP, 0, 5, "groups.sync_group", "Group Read"),
    Api(ApiKey.DESCRIBE_GROUPS, 0, 5, "groups.describe_groups", "Group Describe"),
    Api(ApiKey.LIST_GROUPS, 0, 5, "groups.list_groups", "Cluster Describe or Group Describe"),
    Api(ApiKey.SASL_HANDSHAKE, 0, 1, "security.sasl:handshake", ""),
    Api(ApiKey.API_VERSIONS, 0, 4, "cluster.api_versions", ""),
    Api(
        ApiKey.CREATE_TOPICS,
        0,
        7,
        "topics.create_topics",
        "Cluster Create or Topic Create, Topic DescribeConfigs",
    ),
    Api(ApiKey.DELETE_TOPICS, 0, 6, "topics.delete_topics", "Topic Delete, Topic Describe"),
    Api(ApiKey.DELETE_RECORDS, 0, 2, "data.delete_records", "Topic Delete"),
    Api(
        ApiKey.INIT_PRODUCER_ID,
        0,
        6,
        "transactions.init_producer_id",
        "TransactionalId Write, Cluster IdempotentWrite or Topic Write",
    ),
    Api(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        0,
        4,
        "data.offset_for_leader_epoch",
        "Cluster ClusterAction or Topic Describe",
    ),
    Api(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        0,
        5,
        "transactions.add_partitions_to_txn",
        "TransactionalId Write, Topic Write, Cluster ClusterAction",
    ),
    Api(
        ApiKey.ADD_OFFSETS_TO_TXN,
        0,
        4,
        "transactions.add_offsets_to_txn",
        "TransactionalId Write, Group Read",
    ),
    Api(ApiKey.END_TXN, 0, 4, "transactions.end_txn", "TransactionalId Write"),
    Api(
        ApiKey.WRITE_TXN_MARKERS,
        0,
        1,
        "transactions.write_txn_markers",
        "Cluster Alter or Cluster ClusterAction",
    ),
    Api(
        ApiKey.TXN_OFFSET_COMMIT,
        0,
        4,
        "transactions.txn_offset_commit",
        "TransactionalId Write, Group Read, Topic Read",
    ),
    Api(ApiKey.DESCRIBE_ACLS, 0, 3, "security.acls:describe", "Cluster Describe"),
    Api(ApiKey.CREATE_ACLS, 0, 3, "security.acls:create", "Cluster Alter"),
    Api(ApiKey.DELETE_ACLS, 0, 3, "security.acls:delete", "Cluster Alter"),
    Api(
        ApiKey.DESCRIBE_CONFIGS,
        0,
        4,
        "settings.describe_configs",
        "Topic DescribeConfigs, Cluster DescribeConfigs",
    ),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, "settings.alter_configs", "Topic AlterConfigs, Cluster AlterConfigs"),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, "data.alter_replica_log_dirs", "Cluster Alter"),
    Api(ApiKey.DESCRIBE_LOG_DIRS, 0, 4, "data.describe_log_dirs", "Cluster Describe"),
    Api(ApiKey.SASL_AUTHENTICATE, 0, 2, "security.sasl:authenticate", ""),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, "topics.create_partitions", "Topic Alter"),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, "security.refused:create_delegation_token", ""),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, "security.refused:renew_delegation_token", ""),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, "security.refused:expire_delegation_token", ""),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, "security.refused:describe_delegation_token", ""),
    Api(ApiKey.DELETE_GROUPS, 0, 2, "groups.delete_groups", "Group Delete"),
    Api(ApiKey.ELECT_LEADERS, 0, 2, "topics.elect_leaders", "Cluster Alter"),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        0,
        1,
        "settings.incremental_alter_configs",
        "Topic AlterConfigs, Cluster AlterConfigs",
    ),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 0, "topics.alter_partition_reassignments", "Cluster Alter"),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "topics.list_partition_reassignments", "Cluster Describe"),
    Api(ApiKey.OFFSET_DELETE, 0, 0, "groups.offset_delete", "Group Delete, Topic Read"),
    Api(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        0,
        1,
        "security.quotas:describe",
        "Cluster DescribeConfigs",
    ),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "security.quotas:alter", "Cluster AlterConfigs"),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, "security.scram:describe", "Cluster Describe"),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "security.scram:alter", "Cluster Alter"),
    Api(ApiKey.ALTER_PARTITION, 0, 3, "control.alter_partition", "Cluster ClusterAction"),
    Api(ApiKey.UPDATE_FEATURES, 0, 1, "cluster.update_features", "Cluster Alter"),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 1, "cluster.describe_cluster", "Cluster Describe"),
    Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "transactions.describe_producers", "Topic Read"),
    Api(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        0,
        "transactions.describe_transactions",
        "TransactionalId Describe, Topic Describe",
    ),
    Api(ApiKey.LIST_TRANSACTIONS, 0, 1, "transactions.list_transactions", "TransactionalId Describe"),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, "transactions.allocate_producer_ids", "Cluster ClusterAction"),
)
"""In the order of the keys, which is the order of ApiVersions' answer."""


def by_key() -> list[Api | None]:
    """The list again, each API at the place of its key."""
    table: list[Api | None] = [None] * (max(api.key for api in APIS) + 1)
    for api in APIS:
        table[api.key] = api
    return table
