"""AlterClientQuotas: quotas are set and removed."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


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
    entries: list[RequestEntryData] = []
    validate_only: bool = False


class ResponseEntryData(Struct):
    error_code: i16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Response):
    throttle_time_ms: i32 = 0
    entries: list[ResponseEntryData] = []
