"""AlterClientQuotas: quotas are set and removed."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Struct):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class RequestEntryData(Struct):
    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=1, api_key=ApiKey.ALTER_CLIENT_QUOTAS)

    entries: list[RequestEntryData] = []
    validate_only: bool = False


class ResponseEntryData(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 1), flexible=1, api_key=ApiKey.ALTER_CLIENT_QUOTAS)

    throttle_time_ms: i32 = 0
    entries: list[ResponseEntryData] = []
