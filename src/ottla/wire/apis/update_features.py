"""UpdateFeatures: the finalized feature levels change."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i8, i16, i32, not_ignorable, since, until
from ottla.wire.keys import ApiKey


class FeatureUpdateKey(Struct):
    feature: str = ""
    max_version_level: i16 = 0
    allow_downgrade: Annotated[bool, until(0), not_ignorable] = False
    upgrade_type: Annotated[i8, since(1), not_ignorable] = 1


class UpdateFeaturesRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=0, api_key=ApiKey.UPDATE_FEATURES)

    timeout_ms: i32 = 60_000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, since(1), not_ignorable] = False


class UpdatableFeatureResult(Struct):
    feature: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=0, api_key=ApiKey.UPDATE_FEATURES)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = []
