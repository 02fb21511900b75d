"""Writes, for one message in one version, the function that encodes it.

A run of fixed-width fields is one ``struct`` call, names and lists of broker ids come from caches, nested
arrays are plain loops. Record batches are not copied: they stand as parts of their own in the list that the
function gives.
"""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from ottla.wire.compiler import caches
from ottla.wire.compiler.layout import Array, Blob, Field, Kind, Nested, Text, fields_of
from ottla.wire.compiler.source import Source
from ottla.wire.fields import Encoder, Fixed, Message, RecordBytes, Request
from ottla.wire.primitives import ONE_BYTE, STRING_BYTES_MAX, fits_string, uvarint

FOR_PEOPLE = "error_message"
"""The endings of the names of fields that only people read."""


class UnsupportedVersion(ValueError):
    """A request uses a field that the version to be sent does not have."""


def compile_encoder(message: type[Message], version: int) -> Encoder:
    """The function from the message to its parts."""
    encoder: Encoder = _EncoderSource(message, version).compile_all()
    return encoder


def write_tags(tags: list[tuple[int, bytes]]) -> bytes:
    """A tag block of the given fields, in the order of their tags."""
    out = [uvarint(len(tags))]
    for number, encoded in tags:
        out += (uvarint(number), uvarint(len(encoded)), encoded)
    return b"".join(out)


def refuse(field: str, version: int) -> None:
    """The version lacks a field whose value must not be dropped."""
    raise UnsupportedVersion(f"version {version} cannot carry {field}")


def shortened(text: str | None) -> str | None:
    """A text for people, cut to what can be sent: it may quote names of any length."""
    return text if text is None or fits_string(text) else text[: STRING_BYTES_MAX // 4]


_NAMES: dict[str, Any] = {
    "strings": caches.STRINGS,
    "compact_strings": caches.COMPACT_STRINGS,
    "nullable_strings": caches.NULLABLE_STRINGS,
    "nullable_compact_strings": caches.NULLABLE_COMPACT_STRINGS,
    "int32s": caches.INT32S,
    "compact_int32s": caches.COMPACT_INT32S,
    "refuse": refuse,
    "shortened": shortened,
    "one_byte": ONE_BYTE,
    "uvarint": uvarint,
    "write_tags": write_tags,
}


class _EncoderSource(Source):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(_NAMES)
        self.message = message
        self.version = version
        self.is_flexible = message.spec.is_flexible(version)
        self.checks_absent = issubclass(message, Request)
        self.run: list[tuple[str, str]] = []
        """Fixed-width fields not yet written: the letter and the expression of each."""
        self.pieces: list[str] = []
        """Expressions of bytes that follow one another and are not yet written."""

    def compile_all(self) -> Any:
        self.line("def encode(m):")
        self.indent += 1
        self.line("parts = []")
        self.line("out = []")
        self.write_struct(self.message, "m")
        self.flush()
        self.line("if out:")
        self.line('    parts.append(b"".join(out))')
        self.line("return parts")
        return self.compile(self.message, self.version, "encode")

    # Runs and pieces

    def end_run(self) -> None:
        """Turn the pending fixed-width fields into one piece."""
        if self.run:
            letters = "".join(letter for letter, _ in self.run)
            arguments = ", ".join(expression for _, expression in self.run)
            self.pieces.append(f"{self.packer(letters)}({arguments})")
            self.run.clear()

    def piece(self, expression: str) -> None:
        """Bytes that follow all so far."""
        self.end_run()
        self.pieces.append(expression)

    def flush(self) -> None:
        """Write all that is pending."""
        self.end_run()
        if len(self.pieces) == 1:
            self.line(f"out.append({self.pieces[0]})")
        elif self.pieces:
            self.line(f"out += ({', '.join(self.pieces)})")
        self.pieces.clear()

    def count(self, expression: str, letter: str) -> None:
        """A length or count."""
        if self.is_flexible:
            self.piece(f"(one_byte[n] if (n := {expression} + 1) < 128 else uvarint(n))")
        else:
            self.run.append((letter, expression))

    def null(self, letter: str) -> str:
        """The bytes of a null in place of a length."""
        return (
            "b'\\x00'"
            if self.is_flexible
            else "b'\\xff\\xff'"
            if letter == "h"
            else "b'\\xff\\xff\\xff\\xff'"
        )

    # Structs and their tag blocks

    def write_struct(self, struct_type: type[msgspec.Struct], value: str) -> None:
        fields = fields_of(struct_type)
        if self.checks_absent:
            for field in fields:
                if field.not_ignorable and not field.is_in(self.version):
                    self.write_refusal(field, value)
        for field in fields:
            if field.tag is None and field.is_in(self.version):
                self.write_kind(field.kind, f"{value}.{field.name}", field.is_nullable(self.version))
        if self.is_flexible:
            self.write_tag_block(fields, value)

    def write_refusal(self, field: Field, value: str) -> None:
        self.line(f"if {self.is_set(field, value)}:")
        self.line(f"    refuse({field.name!r}, {self.version})")

    def is_set(self, field: Field, value: str) -> str:
        """The expression for: the field does not have its default."""
        attribute = f"{value}.{field.name}"
        if field.default_is_made and field.default is list:
            return attribute if field.nulls is None else f"{attribute} != []"
        if field.default_is_made:
            return f"{attribute} != {self.constant('default', field.default())}"
        if field.default is None:
            return f"{attribute} is not None"
        if isinstance(field.default, (bool, int, str)):
            return f"{attribute} != {field.default!r}"
        default = self.constant("default", field.default)
        return f"({attribute} is not {default} and {attribute} != {default})"

    def write_tag_block(self, fields: tuple[Field, ...], value: str) -> None:
        tagged = sorted(
            (f for f in fields if f.tag is not None and f.is_in(self.version)), key=lambda f: f.tag or 0
        )
        if not tagged:
            self.piece("b'\\x00'")
            return
        condition = " or ".join(self.is_set(field, value) for field in tagged)
        self.piece(f"({self.tag_writer(tagged)}({value}) if {condition} else b'\\x00')")

    def tag_writer(self, tagged: list[Field]) -> str:
        """Writes, ahead of the lines so far, the function that gives a tag block that is not empty."""
        outer = self.lines, self.indent, self.run, self.pieces
        self.lines, self.indent, self.run, self.pieces = [], 0, [], []
        name = self.fresh("encode_tags")
        self.line(f"def {name}(m):")
        self.indent = 1
        self.line("tags = []")
        for field in tagged:
            self.line(f"if {self.is_set(field, 'm')}:")
            self.indent = 2
            self.line("out = []")
            self.write_kind(field.kind, f"m.{field.name}", field.is_nullable(self.version))
            self.flush()
            self.line(f'tags.append(({field.tag}, b"".join(out)))')
            self.indent = 1
        self.line("return write_tags(tags)")
        lines = self.lines
        self.lines, self.indent, self.run, self.pieces = outer
        self.lines = lines + self.lines
        return name

    # Single fields

    def write_kind(self, kind: Kind, value: str, is_nullable: bool) -> None:
        match kind:
            case Fixed():
                self.run.append((kind.letter, value))
            case Text():
                cache = "compact_strings" if self.is_flexible else "strings"
                value = f"shortened({value})" if value.endswith(FOR_PEOPLE) else value
                self.piece(f"{'nullable_' * is_nullable}{cache}[{value}]")
            case Blob():
                self.write_nullable(value, is_nullable, self.write_blob)
            case RecordBytes():
                self.write_nullable(value, is_nullable, self.write_records)
            case Nested():
                self.write_nested(kind.struct, value, is_nullable)
            case Array():
                self.write_nullable(value, is_nullable, lambda v: self.write_array(kind.element, v))
            case _:
                assert_never(kind)

    def write_nullable(self, value: str, is_nullable: bool, write: Callable[[str], None]) -> None:
        """A sized thing: its null, or what the writer writes."""
        name = self.fresh("v")
        self.line(f"{name} = {value}")
        if not is_nullable:
            write(name)
            return
        self.flush()
        self.line(f"if {name} is None:")
        self.line(f"    out.append({self.null('i')})")
        self.line("else:")
        self.indent += 1
        write(name)
        self.flush()
        self.indent -= 1

    def write_blob(self, value: str) -> None:
        self.count(f"len({value})", "i")
        self.piece(value)

    def write_records(self, value: str) -> None:
        self.count(f"len({value})", "i")
        self.flush()
        self.line(f'parts += (b"".join(out), {value})')
        self.line("out.clear()")

    def write_nested(self, struct_type: type[msgspec.Struct], value: str, is_nullable: bool) -> None:
        if not is_nullable:
            self.write_struct(struct_type, value)
            return
        self.flush()
        self.line(f"if {value} is None:")
        self.line("    out.append(b'\\xff')")
        self.line("else:")
        self.indent += 1
        self.piece("b'\\x01'")
        self.write_struct(struct_type, value)
        self.flush()
        self.indent -= 1

    def write_array(self, element: Kind, value: str) -> None:
        if isinstance(element, Fixed) and element.letter == "i":
            self.piece(f"{'compact_' * self.is_flexible}int32s[{value}]")
            return
        self.count(f"len({value})", "i")
        self.flush()
        item = self.fresh("item")
        self.line(f"for {item} in {value}:")
        self.indent += 1
        self.write_kind(element, item, is_nullable=False)
        self.flush()
        self.indent -= 1
