"""Our messages as kio's, so that kio can judge the bytes; kio holds some numbers in narrower types."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field

from ottla.wire.compiler.layout import Array, Field, Nested, fields_of
from ottla.wire.fields import Message
from support.wire.messages import Limit, is_request, versions_of

_LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in KioErrorCode]),
    "timedelta_i64": st.integers(-(10**12), 10**12),
    "datetime_i64": st.integers(0, 4 * 10**12),
}


def kio_class(cls: type[Message], version: int) -> Any:
    load = load_request_schema if is_request(cls) else load_response_schema
    assert cls.spec.api_key is not None
    return load(int(cls.spec.api_key), version)


def encoded_by_kio(message: Message, version: int) -> bytes:
    kio_type = kio_class(type(message), version)
    out = io.BytesIO()
    entity_writer(kio_type)(out, as_kio(message, version, kio_type))
    return out.getvalue()


def decoded_by_kio(cls: type[Message], version: int, encoded: bytes) -> Any:
    entity, size = entity_reader(kio_class(cls, version))(encoded, 0)
    assert size == len(encoded)
    return entity


def as_kio(struct: Any, version: int, kio_type: Any) -> Any:
    """The same values in kio's class."""
    return kio_type(
        **{
            kio_field.name: _value_as_kio(getattr(struct, field.name), version, kio_field)
            for field, kio_field in _pairs(type(struct), version, kio_type)
        }
    )


def _pairs(struct: type[msgspec.Struct], version: int, kio_type: Any) -> list[tuple[Field, Any]]:
    """Our fields beside kio's: both stand in the order of Kafka's schema."""
    ours = [field for field in fields_of(struct) if field.is_in(version)]
    return list(zip(ours, dataclasses.fields(kio_type), strict=True))


def _value_as_kio(value: Any, version: int, kio_field: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return as_kio(value, version, classify_field(kio_field).type_)
    if isinstance(value, list):
        return tuple(as_kio(item, version, classify_field(kio_field).type_) for item in value)
    match kio_field.metadata.get("kafka_type"):
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return datetime.fromtimestamp(value / 1000, UTC)
        case "uuid":
            return UUID(bytes=value) if value != bytes(16) else None
        case _:
            return value


def limit_for(cls: type[Message]) -> Limit:
    """Values that kio can hold, for the fields that it holds in narrower types."""
    narrow: dict[tuple[type[msgspec.Struct], str], st.SearchStrategy[Any]] = {}

    def walk(struct: type[msgspec.Struct], version: int, kio_type: Any) -> None:
        for field, kio_field in _pairs(struct, version, kio_type):
            inner = field.kind.element if isinstance(field.kind, Array) else field.kind
            if isinstance(inner, Nested):
                walk(inner.struct, version, classify_field(kio_field).type_)
            elif kio_field.metadata["kafka_type"] in _LIMITS:
                narrow[struct, field.name] = _LIMITS[kio_field.metadata["kafka_type"]]

    for version in versions_of(cls):
        walk(cls, version, kio_class(cls, version))
    return lambda struct, field: narrow.get((struct, field.name))
