"""Heartbeat: a member says that it lives."""

from typing import Annotated

from ottla.wire.fields import Request, Response, i16, i32, not_ignorable, since


class HeartbeatRequest(Request):
    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3), not_ignorable] = None


class HeartbeatResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
