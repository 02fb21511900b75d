"""DeleteAcls: the access rules that match go."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since


class DeleteAclsFilter(Struct):
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: Annotated[i8, since(1), not_ignorable] = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DeleteAclsRequest(Request):
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: Annotated[i8, since(1)] = 3
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


class DeleteAclsFilterResult(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Response):
    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
