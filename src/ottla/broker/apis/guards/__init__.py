"""What stands before the handlers where an authorizer decides: who lacks a right is refused as Kafka does.

A guard takes out of the request what its client may not do and has the answer say so, or answers itself. The
handler behind it sees only what is allowed. Some handlers look at ``request.access`` themselves, where a
right matters in their midst.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.access.access import Access
from ottla.broker.clients.request import Request
from ottla.wire.keys import ApiKey

if TYPE_CHECKING:
    from ottla.broker.access.authorizer import Authorizer
    from ottla.broker.apis import Api
    from ottla.broker.node import Node

Guard = Callable[[Any, Access, Request, Any], Any]
"""Returns the refusal, or None when the handler may go on."""

GUARDS: Final[dict[ApiKey, str]] = {
    ApiKey.PRODUCE: "topics:produce",
    ApiKey.LIST_OFFSETS: "topics:list_offsets",
    ApiKey.LEADER_AND_ISR: "cluster:leader_and_isr",
    ApiKey.STOP_REPLICA: "cluster:stop_replica",
    ApiKey.OFFSET_COMMIT: "groups:offset_commit",
    ApiKey.OFFSET_FETCH: "groups:offset_fetch",
    ApiKey.FIND_COORDINATOR: "groups:find_coordinator",
    ApiKey.DESCRIBE_GROUPS: "groups:describe_groups",
    ApiKey.LIST_GROUPS: "groups:list_groups",
    ApiKey.CREATE_TOPICS: "topics:create_topics",
    ApiKey.DELETE_RECORDS: "topics:delete_records",
    ApiKey.INIT_PRODUCER_ID: "transactions:init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "topics:offset_for_leader_epoch",
    ApiKey.ADD_PARTITIONS_TO_TXN: "transactions:add_partitions_to_txn",
    ApiKey.ADD_OFFSETS_TO_TXN: "transactions:add_offsets_to_txn",
    ApiKey.WRITE_TXN_MARKERS: "transactions:write_txn_markers",
    ApiKey.TXN_OFFSET_COMMIT: "transactions:txn_offset_commit",
    ApiKey.CREATE_ACLS: "cluster:create_acls",
    ApiKey.DELETE_ACLS: "cluster:delete_acls",
    ApiKey.ALTER_CONFIGS: "settings:alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "cluster:alter_replica_log_dirs",
    ApiKey.CREATE_PARTITIONS: "topics:create_partitions",
    ApiKey.DELETE_GROUPS: "groups:delete_groups",
    ApiKey.ELECT_LEADERS: "cluster:elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "settings:alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "cluster:alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "cluster:list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "groups:offset_delete",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "cluster:describe_client_quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "cluster:alter_client_quotas",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "cluster:alter_user_scram_credentials",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "cluster:describe_user_scram_credentials",
    ApiKey.DESCRIBE_PRODUCERS: "topics:describe_producers",
    ApiKey.DESCRIBE_TRANSACTIONS: "transactions:describe_transactions",
    ApiKey.LIST_TRANSACTIONS: "transactions:list_transactions",
}
"""Those of APIs whose refusal is more than one error code."""

IN_THE_HANDLER: Final = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
    }
)
"""APIs whose handlers ask ``request.access``."""

_loaded: dict[ApiKey, Guard | None] = {}


def guard_of(key: ApiKey) -> Guard | None:
    """What stands before the API's handler; None if the handler itself asks."""
    if key not in _loaded:
        module, _, function = GUARDS.get(key, "whole:refuse").partition(":")
        asks_itself = key in IN_THE_HANDLER
        _loaded[key] = None if asks_itself else getattr(import_module(f"{__name__}.{module}"), function)
    return _loaded[key]


def serve(node: "Node", authorizer: "Authorizer", api: "Api", request: Request, body: Any) -> Any:
    """The answer to a request whose client may not do everything."""
    if api.rights:
        request.access = Access(authorizer, request, api.rights)
        guard = guard_of(api.key)
        refusal = None if guard is None else guard(node, request.access, request, body)
        if refusal is not None:
            return refusal
    return api.handle(node, request, body)
