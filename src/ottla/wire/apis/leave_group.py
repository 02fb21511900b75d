"""LeaveGroup: members leave their group at once."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, since, until


class MemberIdentity(Struct):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: Annotated[str | None, since(5)] = None


class LeaveGroupRequest(Request):
    group_id: str = ""
    member_id: Annotated[str, until(2), not_ignorable] = ""
    members: Annotated[list[MemberIdentity], since(3), not_ignorable] = []


class MemberResponse(Struct):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: i16 = 0


class LeaveGroupResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
