"""The one list of what this broker speaks: API, versions, request, handler."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.apis import (
    api_versions,
    describe_cluster,
    find_coordinator,
    init_producer_id,
    metadata,
    update_metadata,
)
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.describe_cluster import DescribeClusterRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.apis.update_metadata import UpdateMetadataRequest
from ottla.wire.keys import ApiKey


class Api(NamedTuple):
    """One line of the list; the versions are the advertised ones, both ends included."""

    key: ApiKey
    min_version: int
    max_version: int
    request: Any
    handle: Callable[[Any, Any, Any], Any]
    """``handle(node, request, body)`` returns the response; None when it was parked or answered already."""


APIS: tuple[Api, ...] = (
    Api(ApiKey.METADATA, 0, 12, MetadataRequest, metadata.handle),
    Api(ApiKey.UPDATE_METADATA, 0, 8, UpdateMetadataRequest, update_metadata.handle),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, FindCoordinatorRequest, find_coordinator.handle),
    Api(ApiKey.API_VERSIONS, 0, 4, ApiVersionsRequest, api_versions.handle),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 5, InitProducerIdRequest, init_producer_id.handle),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 1, DescribeClusterRequest, describe_cluster.handle),
)
"""In the order of the keys, which is the order of ApiVersions' answer."""


def by_key() -> list[Api | None]:
    """The list again, each API at the place of its key."""
    table: list[Api | None] = [None] * (max(api.key for api in APIS) + 1)
    for api in APIS:
        table[api.key] = api
    return table
