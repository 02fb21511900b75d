"""JoinGroup: a member enters a group's next generation."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, nullable, since


class JoinGroupRequestProtocol(Struct):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Request):
    group_id: str = ""
    session_timeout_ms: i32 = 0
    rebalance_timeout_ms: Annotated[i32, since(1)] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5), not_ignorable] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, since(8)] = None


class JoinGroupResponseMember(Struct):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    metadata: bytes = b""


class JoinGroupResponse(Response):
    throttle_time_ms: Annotated[i32, since(2)] = 0
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, nullable(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
