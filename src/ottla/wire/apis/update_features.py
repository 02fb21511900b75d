"""UpdateFeatures: the finalized feature levels change."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since, until


class FeatureUpdateKey(Struct):
    feature: str = ""
    max_version_level: i16 = 0
    allow_downgrade: Annotated[bool, until(0), not_ignorable] = False
    upgrade_type: Annotated[i8, since(1), not_ignorable] = 1


class UpdateFeaturesRequest(Request):
    timeout_ms: i32 = 60_000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, since(1), not_ignorable] = False


class UpdatableFeatureResult(Struct):
    feature: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = []
