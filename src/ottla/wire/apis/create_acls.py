"""CreateAcls: new access rules."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since


class AclCreation(Struct):
    resource_type: i8 = 0
    resource_name: str = ""
    resource_pattern_type: Annotated[i8, since(1), not_ignorable] = 3
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


class CreateAclsRequest(Request):
    creations: list[AclCreation] = []


class AclCreationResult(Struct):
    error_code: i16 = 0
    error_message: str | None = ""


class CreateAclsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
