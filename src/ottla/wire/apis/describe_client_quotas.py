"""DescribeClientQuotas: the quotas that match a filter."""

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32


class ComponentData(Struct):
    entity_type: str = ""
    match_type: i8 = 0
    match: str | None = ""


class DescribeClientQuotasRequest(Request):
    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Struct):
    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(Struct):
    key: str = ""
    value: float = 0.0


class EntryData(Struct):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
