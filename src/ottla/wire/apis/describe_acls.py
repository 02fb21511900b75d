"""DescribeAcls: which access rules match a filter."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since


class DescribeAclsRequest(Request):
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: Annotated[i8, since(1), not_ignorable] = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


class AclDescription(Struct):
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DescribeAclsResource(Struct):
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: Annotated[i8, since(1)] = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
