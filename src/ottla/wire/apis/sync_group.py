"""SyncGroup: the group's leader hands out assignments, every member takes its own."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, since


class SyncGroupRequestAssignment(Struct):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Request):
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3), not_ignorable] = None
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignment: bytes = b""
