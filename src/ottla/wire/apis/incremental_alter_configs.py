"""IncrementalAlterConfigs: single settings are set, removed, appended to or subtracted from."""

from ottla.wire.apis.alter_configs import AlterConfigsResourceResponse
from ottla.wire.fields import Request, Response, Struct, i8, i32


class AlterableConfig(Struct):
    name: str = ""
    config_operation: i8 = 0
    value: str | None = ""


class AlterConfigsResource(Struct):
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Request):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class IncrementalAlterConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
