"""ApiVersions: which versions of which API a broker speaks."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, since, tag


class ApiVersionsRequest(Request):
    client_software_name: Annotated[str, since(3)] = ""
    client_software_version: Annotated[str, since(3)] = ""


class ApiVersion(Struct):
    api_key: i16 = 0
    min_version: i16 = 0
    max_version: i16 = 0


class SupportedFeatureKey(Struct):
    name: str = ""
    min_version: i16 = 0
    max_version: i16 = 0


class FinalizedFeatureKey(Struct):
    name: str = ""
    max_version_level: i16 = 0
    min_version_level: i16 = 0


class ApiVersionsResponse(Response):
    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], since(3), tag(0)] = []
    finalized_features_epoch: Annotated[i64, since(3), tag(1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], since(3), tag(2)] = []
    zk_migration_ready: Annotated[bool, since(3), tag(3)] = False
