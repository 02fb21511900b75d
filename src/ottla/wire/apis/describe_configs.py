"""DescribeConfigs: settings of topics and brokers, and where they come from."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since, until


class DescribeConfigsResource(Struct):
    resource_type: i8 = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()


class DescribeConfigsRequest(Request):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: Annotated[bool, since(1), not_ignorable] = False
    include_documentation: Annotated[bool, since(3), not_ignorable] = False


class DescribeConfigsSynonym(Struct):
    name: str = ""
    value: str | None = ""
    source: i8 = 0


class DescribeConfigsResourceResult(Struct):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: Annotated[bool, until(0)] = False
    config_source: Annotated[i8, since(1)] = -1
    is_sensitive: bool = False
    synonyms: Annotated[list[DescribeConfigsSynonym], since(1)] = []
    config_type: Annotated[i8, since(3)] = 0
    documentation: Annotated[str | None, since(3)] = ""


class DescribeConfigsResult(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
