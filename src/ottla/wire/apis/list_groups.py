"""ListGroups: the groups that a broker coordinates."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, since


class ListGroupsRequest(Request):
    states_filter: Annotated[tuple[str, ...], since(4), not_ignorable] = ()
    types_filter: Annotated[tuple[str, ...], since(5), not_ignorable] = ()


class ListedGroup(Struct):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, since(4)] = ""
    group_type: Annotated[str, since(5)] = ""


class ListGroupsResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
