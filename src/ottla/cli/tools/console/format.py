"""A record as the line that Kafka's default formatter prints."""

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from ottla.cli.shared.refusal import UsageRefused
from ottla.model.ids import TopicPartition
from ottla.records.record import Record

Decode = Callable[[bytes], bytes]


class Unprintable(Exception):
    """A deserializer cannot read the bytes."""


@dataclass(frozen=True, slots=True)
class Format:
    """What is printed of a record, and what stands between the parts."""

    timestamp: bool = False
    key: bool = False
    offset: bool = False
    partition: bool = False
    headers: bool = False
    value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    decode_key: Decode = bytes
    decode_value: Decode = bytes
    decode_header: Decode = bytes
    is_silent: bool = False
    is_json: bool = False
    """All that is known of a record, as one object."""

    @classmethod
    def of(
        cls, properties: dict[str, str], formatter: str = "DefaultMessageFormatter", *, is_json: bool = False
    ) -> Self:
        """From Kafka's property names; an unknown one is refused."""
        left = dict(properties)
        short = formatter.rpartition(".")[2]
        if short not in ("DefaultMessageFormatter", "NoOpMessageFormatter"):
            raise UsageRefused(f"the formatter {formatter} is not supported; see --help")

        def flag(name: str, default: str = "false") -> bool:
            return left.pop(f"print.{name}", default).strip().lower() == "true"

        made = cls(
            flag("timestamp"),
            flag("key"),
            flag("offset"),
            flag("partition"),
            flag("headers"),
            flag("value", "true"),
            left.pop("key.separator", "\t").encode(),
            left.pop("line.separator", "\n").encode(),
            left.pop("headers.separator", ",").encode(),
            left.pop("null.literal", "null").encode(),
            deserializer(left.pop("key.deserializer", "ByteArray")),
            deserializer(left.pop("value.deserializer", "ByteArray")),
            deserializer(left.pop("headers.deserializer", left.pop("header.deserializer", "ByteArray"))),
            short == "NoOpMessageFormatter",
            is_json,
        )
        if left:
            raise UsageRefused(f"--property {next(iter(left))} is not known; see --help")
        return made

    def line(self, partition: TopicPartition, record: Record, timestamp_type: str) -> bytes:
        """One record's line, with its end."""
        if self.is_silent:
            return b""
        if self.is_json:
            return self._object(partition, record, timestamp_type) + self.line_separator
        parts: list[bytes] = []
        if self.timestamp:
            known = record.timestamp >= 0
            parts.append(f"{timestamp_type}:{record.timestamp}".encode() if known else b"NO_TIMESTAMP")
        if self.partition:
            parts.append(f"Partition:{partition.partition}".encode())
        if self.offset:
            parts.append(f"Offset:{record.offset}".encode())
        if self.headers:
            parts.append(self._headers(record))
        if self.key:
            parts.append(self._text(record.key, self.decode_key))
        if self.value:
            parts.append(self._text(record.value, self.decode_value))
        return self.key_separator.join(parts) + self.line_separator

    def _object(self, partition: TopicPartition, record: Record, timestamp_type: str) -> bytes:
        def words(part: bytes | None, decode: Decode) -> str | None:
            return None if part is None else decode(part).decode(errors="backslashreplace")

        return json.dumps(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "timestamp_type": timestamp_type,
                "key": words(record.key, self.decode_key),
                "value": words(record.value, self.decode_value),
                "headers": [[name, words(value, self.decode_header)] for name, value in record.headers],
            },
            ensure_ascii=False,
        ).encode()

    def _headers(self, record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            name.encode() + b":" + self._text(value, self.decode_header) for name, value in record.headers
        )

    def _text(self, part: bytes | None, decode: Decode) -> bytes:
        return self.null_literal if part is None else decode(part)


def deserializer(name: str) -> Decode:
    """One of Kafka's by its class name, long or short."""
    short = name.rpartition(".")[2].removesuffix("Deserializer")
    if short in ("String", "ByteArray", "Bytes", "ByteBuffer"):
        return bytes
    layout = {"Integer": ">i", "Long": ">q", "Short": ">h", "Float": ">f", "Double": ">d"}.get(short)
    if layout is None:
        raise UsageRefused(f"the deserializer {name} is not known; see --help")
    return lambda part: _number(part, layout, short)


def _number(part: bytes, layout: str, name: str) -> bytes:
    try:
        (value,) = struct.unpack(layout, part)
    except struct.error:
        raise Unprintable(f"{len(part)} bytes are no {name}") from None
    return (java_decimal(value, layout) if isinstance(value, float) else str(value)).encode()


def java_decimal(value: float, layout: str) -> str:
    """As Java prints it: the fewest digits that identify it, with an exponent if very large or small."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    packed = struct.pack(layout, value)
    shortest = next(text for digits in range(18) if _means(text := f"{value:.{digits}e}", packed, layout))
    mantissa, _, exponent = shortest.partition("e")
    if value == 0 or -3 <= int(exponent) < 7:
        plain = f"{Decimal(shortest):f}"
        return plain if "." in plain else f"{plain}.0"
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}E{int(exponent)}"


def _means(text: str, packed: bytes, layout: str) -> bool:
    try:
        return struct.pack(layout, float(text)) == packed
    except OverflowError:
        return False  # Rounded beyond the largest number.
