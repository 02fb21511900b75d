"""AlterConfigs: all settings of a topic or broker are replaced."""

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32


class AlterableConfig(Struct):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Struct):
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Request):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
