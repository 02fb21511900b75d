"""Heartbeat: a member says that it lives."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, i16, i32, not_ignorable, since
from ottla.wire.keys import ApiKey


class HeartbeatRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=4, api_key=ApiKey.HEARTBEAT)

    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3), not_ignorable] = None


class HeartbeatResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 4), flexible=4, api_key=ApiKey.HEARTBEAT)

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
