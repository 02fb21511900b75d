"""DeleteGroups: empty groups go."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class DeleteGroupsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.DELETE_GROUPS)

    groups_names: tuple[str, ...] = ()


class DeletableGroupResult(Struct):
    group_id: str = ""
    error_code: i16 = 0


class DeleteGroupsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.DELETE_GROUPS)

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
