"""DescribeGroups: state and members of groups."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, since


class DescribeGroupsRequest(Request):
    groups: tuple[str, ...] = ()
    include_authorized_operations: Annotated[bool, since(3), not_ignorable] = False


class DescribedGroupMember(Struct):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(4)] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Struct):
    error_code: i16 = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[i32, since(3)] = -0x8000_0000


class DescribeGroupsResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    groups: list[DescribedGroup] = []
