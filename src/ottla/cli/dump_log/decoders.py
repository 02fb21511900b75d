"""Keys and values for ``ottla dump-log``: as text, or as the records of Kafka's two internal topics."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ottla.cli.dump_log.format import Undumpable
from ottla.model.errors import MalformedRequest
from ottla.records.record import Record
from ottla.wire.compiler.layout import fields_of
from ottla.wire.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
)
from ottla.wire.fields import Message
from ottla.wire.stored import (
    TRANSACTION_STATES,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogValue,
    decode_group_key,
    decode_stored,
    decode_transaction_key,
    stored_version,
)

KeyAndValue = tuple[str | None, str | None]

_AS_JAVA = "ottla.cli.replace_as_java"


def decode_text(record: Record) -> KeyAndValue:
    """Key and value as UTF-8."""
    return _text(record.key), _text(record.value)


def decode_group_record(record: Record) -> KeyAndValue:
    """Key and value of ``__consumer_offsets`` as JSON."""
    if record.key is None:
        raise Undumpable(
            f"The record at offset {record.offset} has no key, so it is none of __consumer_offsets."
        )
    try:
        key = decode_group_key(record.key)
        if key is None:
            kind = stored_version(record.key)
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        key_text = _json("type", stored_version(record.key), _fields(key, stored_version(record.key)))
        if record.value is None:
            return key_text, "<DELETE>"
        version = stored_version(record.value)
        if isinstance(key, OffsetCommitKey):
            fields = _fields(decode_stored(OffsetCommitValue, record.value), version)
        else:
            fields = _group_fields(decode_stored(GroupMetadataValue, record.value), version)
        return key_text, _json("version", version, fields)
    except MalformedRequest as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def decode_transaction_record(record: Record) -> KeyAndValue:
    """Key and value of ``__transaction_state`` in the words of Kafka's transaction log."""
    if record.key is None:
        raise Undumpable(
            f"The record at offset {record.offset} has no key, so it is none of __transaction_state."
        )
    try:
        key = decode_transaction_key(record.key)
        if key is None:
            return f"unknown::version={stored_version(record.key)}", None
        name = f"transaction_metadata::transactionalId={key.transactional_id}"
        if record.value is None:
            return name, "<DELETE>"
        return name, _transaction_text(decode_stored(TransactionLogValue, record.value))
    except MalformedRequest as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _transaction_text(value: TransactionLogValue) -> str:
    if not 0 <= value.transaction_status < len(TRANSACTION_STATES):
        raise MalformedRequest(f"transaction status {value.transaction_status} is unknown")
    partitions = ",".join(
        f"{schema.topic}-{partition}"
        for schema in value.transaction_partitions or ()
        for partition in schema.partition_ids
    )
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={TRANSACTION_STATES[value.transaction_status]},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )


def _group_fields(value: GroupMetadataValue, version: int) -> dict[str, Any]:
    fields = _fields(value, version)
    if value.protocol_type == PROTOCOL_TYPE:
        for member, shown in zip(value.members, fields["members"], strict=True):
            for name, blob, decode in (
                ("subscription", member.subscription, decode_subscription),
                ("assignment", member.assignment, decode_assignment),
            ):
                shown[name] = _blob_fields(blob, decode, shown[name])
    return fields


def _blob_fields(blob: bytes, decode: Any, as_stored: str) -> Any:
    """A member's blob unpacked, or left as it is if it is not a consumer's."""
    if not blob:
        return as_stored
    try:
        unpacked: ConsumerProtocolSubscription | ConsumerProtocolAssignment = decode(blob)
    except MalformedRequest:
        return as_stored
    return _fields(unpacked, stored_version(blob))


def _fields(struct: msgspec.Struct | Message, version: int) -> dict[str, Any]:
    """The fields of a version, named as in Kafka's schemas."""
    shown = {}
    for field in fields_of(type(struct)):
        if field.is_in(version):
            first, *others = field.name.split("_")
            name = first + "".join(word.capitalize() for word in others)
            shown[name] = _shown(getattr(struct, field.name), version)
    return shown


def _shown(value: Any, version: int) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, msgspec.Struct):
        return _fields(value, version)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_shown(element, version) for element in value]
    return value


def _json(version_name: str, version: int, fields: dict[str, Any]) -> str:
    return json.dumps({version_name: str(version), "data": fields}, separators=(",", ":"), ensure_ascii=False)


def _text(part: bytes | None) -> str | None:
    return None if part is None else part.decode(errors=_AS_JAVA)


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """What is no UTF-8 becomes one replacement character; Java takes all of an encoded surrogate for one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = error.end
    lead, second, third = (*error.object[error.start : error.start + 3], 0, 0)[:3]
    if lead == 0xED and 0xA0 <= second <= 0xBF:
        end = error.start + (3 if 0x80 <= third <= 0xBF else 2)
    return "\N{REPLACEMENT CHARACTER}", end


codecs.register_error(_AS_JAVA, _replace_as_java)
