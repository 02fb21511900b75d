"""The one list of what this broker speaks: API, versions, request, handler."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.apis import api_versions
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.keys import ApiKey


class Api(NamedTuple):
    """One line of the list; the versions are the advertised ones, both ends included."""

    key: ApiKey
    min_version: int
    max_version: int
    request: Any
    handle: Callable[[Any, Any, Any], Any]
    """``handle(node, request, body)`` returns the response, or None when the request was parked or answered."""


APIS: tuple[Api, ...] = (Api(ApiKey.API_VERSIONS, 0, 4, ApiVersionsRequest, api_versions.handle),)
"""In the order of the keys, which is the order of ApiVersions' answer."""


def by_key() -> list[Api | None]:
    """The list again, each API at the place of its key."""
    table: list[Api | None] = [None] * (max(api.key for api in APIS) + 1)
    for api in APIS:
        table[api.key] = api
    return table
