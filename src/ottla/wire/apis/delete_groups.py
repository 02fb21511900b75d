"""DeleteGroups: empty groups go."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


class DeleteGroupsRequest(Request):
    groups_names: tuple[str, ...] = ()


class DeletableGroupResult(Struct):
    group_id: str = ""
    error_code: i16 = 0


class DeleteGroupsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
