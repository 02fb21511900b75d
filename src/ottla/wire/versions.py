"""Which versions of which API Kafka 3.9 has, and since when they are flexible.

The header of a request must be read before the table of its API is loaded, so these facts are here.
"""

from typing import Final, NamedTuple

from ottla.wire.keys import ApiKey


class ApiVersionRange(NamedTuple):
    """The versions of one API, both included, and its first flexible one (``None``: never)."""

    first: int
    last: int
    flexible: int | None


API_VERSIONS: Final[dict[int, ApiVersionRange]] = {
    ApiKey.PRODUCE: ApiVersionRange(0, 11, 9),
    ApiKey.FETCH: ApiVersionRange(0, 17, 12),
    ApiKey.LIST_OFFSETS: ApiVersionRange(0, 9, 6),
    ApiKey.METADATA: ApiVersionRange(0, 12, 9),
    ApiKey.LEADER_AND_ISR: ApiVersionRange(0, 7, 4),
    ApiKey.STOP_REPLICA: ApiVersionRange(0, 4, 2),
    ApiKey.UPDATE_METADATA: ApiVersionRange(0, 8, 6),
    ApiKey.CONTROLLED_SHUTDOWN: ApiVersionRange(0, 3, 3),
    ApiKey.OFFSET_COMMIT: ApiVersionRange(0, 9, 8),
    ApiKey.OFFSET_FETCH: ApiVersionRange(0, 9, 6),
    ApiKey.FIND_COORDINATOR: ApiVersionRange(0, 6, 3),
    ApiKey.JOIN_GROUP: ApiVersionRange(0, 9, 6),
    ApiKey.HEARTBEAT: ApiVersionRange(0, 4, 4),
    ApiKey.LEAVE_GROUP: ApiVersionRange(0, 5, 4),
    ApiKey.SYNC_GROUP: ApiVersionRange(0, 5, 4),
    ApiKey.DESCRIBE_GROUPS: ApiVersionRange(0, 5, 5),
    ApiKey.LIST_GROUPS: ApiVersionRange(0, 5, 3),
    ApiKey.SASL_HANDSHAKE: ApiVersionRange(0, 1, None),
    ApiKey.API_VERSIONS: ApiVersionRange(0, 4, 3),
    ApiKey.CREATE_TOPICS: ApiVersionRange(0, 7, 5),
    ApiKey.DELETE_TOPICS: ApiVersionRange(0, 6, 4),
    ApiKey.DELETE_RECORDS: ApiVersionRange(0, 2, 2),
    ApiKey.INIT_PRODUCER_ID: ApiVersionRange(0, 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ApiVersionRange(0, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: ApiVersionRange(0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: ApiVersionRange(0, 4, 3),
    ApiKey.END_TXN: ApiVersionRange(0, 4, 3),
    ApiKey.WRITE_TXN_MARKERS: ApiVersionRange(0, 1, 1),
    ApiKey.TXN_OFFSET_COMMIT: ApiVersionRange(0, 4, 3),
    ApiKey.DESCRIBE_ACLS: ApiVersionRange(0, 3, 2),
    ApiKey.CREATE_ACLS: ApiVersionRange(0, 3, 2),
    ApiKey.DELETE_ACLS: ApiVersionRange(0, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: ApiVersionRange(0, 4, 4),
    ApiKey.ALTER_CONFIGS: ApiVersionRange(0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ApiVersionRange(0, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: ApiVersionRange(0, 4, 2),
    ApiKey.SASL_AUTHENTICATE: ApiVersionRange(0, 2, 2),
    ApiKey.CREATE_PARTITIONS: ApiVersionRange(0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: ApiVersionRange(0, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: ApiVersionRange(0, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ApiVersionRange(0, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ApiVersionRange(0, 3, 2),
    ApiKey.DELETE_GROUPS: ApiVersionRange(0, 2, 2),
    ApiKey.ELECT_LEADERS: ApiVersionRange(0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ApiVersionRange(0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ApiVersionRange(0, 0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ApiVersionRange(0, 0, 0),
    ApiKey.OFFSET_DELETE: ApiVersionRange(0, 0, None),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ApiVersionRange(0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: ApiVersionRange(0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ApiVersionRange(0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ApiVersionRange(0, 0, 0),
    ApiKey.ALTER_PARTITION: ApiVersionRange(0, 3, 0),
    ApiKey.UPDATE_FEATURES: ApiVersionRange(0, 1, 0),
    ApiKey.ENVELOPE: ApiVersionRange(0, 0, 0),
    ApiKey.DESCRIBE_CLUSTER: ApiVersionRange(0, 1, 0),
    ApiKey.DESCRIBE_PRODUCERS: ApiVersionRange(0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: ApiVersionRange(0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: ApiVersionRange(0, 1, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: ApiVersionRange(0, 0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ApiVersionRange(0, 0, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ApiVersionRange(0, 0, 0),
}
