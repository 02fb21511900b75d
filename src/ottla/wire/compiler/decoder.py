"""Writes, for one message in one version, the function that reads it.

Lengths and counts come from the network and may be wrong. Positions only grow and slices end where the bytes
end, so a wrong length is found at the next read or at the check of the end; no memory is allocated for a
length. Counts are compared with the bytes that are left before their loop begins.
"""

import struct
from typing import Any, assert_never

import msgspec

from ottla.model.errors import MalformedRequest
from ottla.wire.compiler.caches import DECODED_INT32S
from ottla.wire.compiler.layout import Array, Blob, Field, Kind, Nested, Text, fields_of, size_min
from ottla.wire.compiler.source import Source
from ottla.wire.fields import Decoder, Fixed, Message, RecordBytes
from ottla.wire.primitives import STRING_BYTES_MAX, Buffer, read_uvarint


def compile_decoder(message: type[Message], version: int) -> Decoder:
    """The function from bytes and a position to the message and the position behind it."""
    decoder: Decoder = _DecoderSource(message, version).compile_all()
    return decoder


def read_long_string_length(data: Buffer, position: int) -> tuple[int, int]:
    """A compact string's length (plus one) that takes more than one byte."""
    length, position = read_uvarint(data, position)
    if length > STRING_BYTES_MAX + 1:
        raise MalformedRequest("a string longer than the protocol allows")
    return length, position


def skip_tags(data: Buffer, position: int) -> int:
    """The position behind a tag block of which nothing is known."""
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
    return position


def read_numbers(data: Buffer, position: int, count: int, fixed: Fixed) -> tuple[Any, ...]:
    """An array of fixed-width numbers."""
    if count * fixed.size > len(data) - position:
        raise_short("array")
    return struct.unpack_from(f">{count}{fixed.letter}", data, position)


def raise_null(what: str) -> None:
    """A field is null but must not be."""
    raise MalformedRequest(f"{what} is null")


def raise_short(what: str) -> None:
    """A count is larger than the bytes that are left can hold."""
    raise MalformedRequest(f"{what}: the message ends too early")


_NAMES: dict[str, Any] = {
    "int32s": DECODED_INT32S,
    "raise_null": raise_null,
    "raise_short": raise_short,
    "read_long_string_length": read_long_string_length,
    "read_numbers": read_numbers,
    "read_uvarint": read_uvarint,
    "skip_tags": skip_tags,
}


class _DecoderSource(Source):
    def __init__(self, message: type[Message], version: int) -> None:
        super().__init__(_NAMES)
        self.message = message
        self.version = version
        self.is_flexible = message.spec.is_flexible(version)
        self.has_records = _has_records(message)
        self.run: list[tuple[str, str]] = []
        """Fixed-width reads not yet written: the letter and the variable of each."""

    def compile_all(self) -> Any:
        self.line("def decode(data, p):")
        self.indent += 1
        wanted, convert = ("memoryview", "memoryview(data)") if self.has_records else ("bytes", "bytes(data)")
        self.line(f"if type(data) is not {wanted}:")
        self.line(f"    data = {convert}")
        self.line("limit = len(data)")
        result = self.read_struct(self.message)
        self.flush()
        self.line("if p > limit:")
        self.line(f"    raise_short({self.message.__name__!r})")
        self.line(f"return {result}, p")
        return self.compile(self.message, self.version, "decode")

    # Runs of fixed-width fields

    def flush(self) -> None:
        """Write the pending run as one ``struct`` call."""
        if not self.run:
            return
        letters = "".join(letter for letter, _ in self.run)
        variables = [variable for _, variable in self.run]
        size = struct.calcsize(f">{letters}")
        if letters == "B":
            self.line(f"{variables[0]} = data[p]")
        elif letters == "?":
            self.line(f"{variables[0]} = data[p] != 0")
        else:
            self.line(
                f"{', '.join(variables)}{',' * (len(variables) == 1)} = {self.unpacker(letters)}(data, p)"
            )
        self.line(f"p += {size}")
        self.run.clear()

    def read_length(self, letter: str, field: str, is_nullable: bool, is_string: bool = False) -> str:
        """Leaves a length or count in a variable, as it is written: see ``length`` and ``is_null``."""
        n = self.fresh("n")
        self.run.append(("B" if self.is_flexible else letter, n))
        self.flush()
        self.check_length(n, field, is_nullable, is_string)
        return n

    def check_length(self, n: str, field: str, is_nullable: bool, is_string: bool) -> None:
        """A length of more than one byte is read to its end; null is refused unless it is allowed."""
        if self.is_flexible:
            reader = "read_long_string_length" if is_string else "read_uvarint"
            self.line(f"if {n} > 127:" if is_nullable else f"if not 0 < {n} < 128:")
            self.line(f"    {n}, p = {reader}(data, p - 1)")
            if not is_nullable:
                self.line(f"    if not {n}:")
                self.line(f"        raise_null({field!r})")
        elif not is_nullable:
            self.line(f"if {n} < 0:")
            self.line(f"    raise_null({field!r})")

    def length(self, n: str) -> str:
        """The true length: flexible versions write one more, to have 0 for null."""
        return f"({n} - 1)" if self.is_flexible else n

    def is_null(self, n: str) -> str:
        """The expression for: the length stands for null."""
        return f"not {n}" if self.is_flexible else f"{n} < 0"

    # Structs and their tag blocks

    def read_struct(self, struct_type: type[msgspec.Struct]) -> str:
        """Reads the fields; gives the expression that builds the struct from their variables."""
        fields = fields_of(struct_type)
        tagged = [f for f in fields if f.tag is not None and f.is_in(self.version)]
        values: dict[str, str] = {}
        for field in fields:
            if field.tag is None and field.is_in(self.version):
                values[field.name] = self.read_field(field)
        if self.is_flexible:
            for field in tagged:
                values[field.name] = self.fresh(field.name)
            self.read_tag_block(tagged, values)
        arguments = [values.get(field.name) or self.default(field) for field in fields]
        while arguments and fields[len(arguments) - 1].name not in values:
            arguments.pop()
        return f"{self.type_name(struct_type)}({', '.join(arguments)})"

    def type_name(self, struct_type: type[msgspec.Struct]) -> str:
        self.names[struct_type.__name__] = struct_type
        return struct_type.__name__

    def default(self, field: Field) -> str:
        if field.default_is_made:
            return "[]" if field.default is list else f"{self.type_name(field.default)}()"
        if (
            field.default is None
            or isinstance(field.default, (bool, int, float, str))
            or field.default in ((), b"")
        ):
            return repr(field.default)
        return self.constant("default", field.default)

    def read_tag_block(self, tagged: list[Field], values: dict[str, str]) -> None:
        count = self.fresh("tags")
        self.run.append(("B", count))
        self.flush()
        self.line(f"if {count}:")
        if not tagged:
            self.line("    p = skip_tags(data, p - 1)")
            return
        variables = ", ".join(values[field.name] for field in tagged)
        self.line(f"    p, {variables} = {self.tag_reader(tagged)}(data, p - 1, limit)")
        self.line("else:")
        for field in tagged:
            self.line(f"    {values[field.name]} = {self.default(field)}")

    def tag_reader(self, tagged: list[Field]) -> str:
        """Writes, ahead of the lines so far, the function that reads a tag block with known tags."""
        outer_lines, outer_indent = self.lines, self.indent
        self.lines, self.indent = [], 0
        name = self.fresh("read_tags")
        self.line(f"def {name}(data, p, limit):")
        self.indent = 1
        variables = {field.name: self.fresh(field.name) for field in tagged}
        for field in tagged:
            self.line(f"{variables[field.name]} = {self.default(field)}")
        self.line("count, p = read_uvarint(data, p)")
        self.line("for _ in range(count):")
        self.indent = 2
        self.line("tag, p = read_uvarint(data, p)")
        self.line("size, p = read_uvarint(data, p)")
        self.line("tag_end = p + size")
        for field in tagged:
            self.line(f"if tag == {field.tag}:")
            self.indent = 3
            value = self.read_field(field)
            self.flush()
            self.line(f"{variables[field.name]} = {value}")
            self.line("if p != tag_end:")
            self.line(f"    raise_short({field.name!r})")
            self.indent = 2
        self.line("p = tag_end")
        self.indent = 1
        self.line(f"return p, {', '.join(variables.values())}")
        self.lines, self.indent = self.lines + outer_lines, outer_indent
        return name

    # Single fields

    def read_field(self, field: Field) -> str:
        """Reads one field; gives the expression of its value, good once the run is flushed."""
        is_nullable = field.is_nullable(self.version)
        return self.read_kind(field.kind, field.name, is_nullable)

    def read_kind(self, kind: Kind, name: str, is_nullable: bool) -> str:
        match kind:
            case Fixed():
                variable = self.fresh(name)
                self.run.append((kind.letter, variable))
                return variable
            case Text():
                return self.read_sized(
                    self.read_length("h", name, is_nullable, is_string=True), name, is_nullable, kind
                )
            case Blob() | RecordBytes():
                return self.read_sized(self.read_length("i", name, is_nullable), name, is_nullable, kind)
            case Nested():
                return self.read_nested(kind, name, is_nullable)
            case Array():
                return self.read_array(kind.element, name, is_nullable)
            case _:
                assert_never(kind)

    def read_sized(self, n: str, name: str, is_nullable: bool, kind: Text | Blob | RecordBytes) -> str:
        variable = self.fresh(name)
        if is_nullable:
            self.line(f"if {self.is_null(n)}:")
            self.line(f"    {variable} = None")
            self.line("else:")
            self.indent += 1
        self.line(f"end = p + {self.length(n)}")
        self.line(f"{variable} = {self.sized_value(kind)}")
        self.line("p = end")
        if is_nullable:
            self.indent -= 1
        return variable

    def sized_value(self, kind: Text | Blob | RecordBytes) -> str:
        if isinstance(kind, Text):
            encoding = "'utf-8', 'replace'"
            return f"str(data[p:end], {encoding})" if self.has_records else f"data[p:end].decode({encoding})"
        if isinstance(kind, Blob) and self.has_records:
            return "bytes(data[p:end])"
        return "data[p:end]"

    def read_nested(self, kind: Nested, name: str, is_nullable: bool) -> str:
        if not is_nullable:
            return self.read_struct(kind.struct)
        variable, marker = self.fresh(name), self.fresh("is_present")
        self.run.append(("b", marker))
        self.flush()
        self.line(f"{variable} = None")
        self.line(f"if {marker} >= 0:")
        self.indent += 1
        value = self.read_struct(kind.struct)
        self.flush()
        self.line(f"{variable} = {value}")
        self.indent -= 1
        return variable

    def read_array(self, element: Kind, name: str, is_nullable: bool) -> str:
        if isinstance(element, Fixed) and element.letter == "i" and not is_nullable:
            return self.read_int32s(name)
        n = self.read_length("i", name, is_nullable)
        variable = self.fresh(name)
        if is_nullable:
            self.line(f"{variable} = None")
            self.line(f"if not ({self.is_null(n)}):")
            self.indent += 1
        if isinstance(element, Fixed):
            fixed = self.constant("fixed", element)
            self.line(f"{variable} = read_numbers(data, p, {self.length(n)}, {fixed})")
            self.line(f"p += {self.length(n)} * {element.size}")
        else:
            self.read_loop(element, name, n, variable)
        if is_nullable:
            self.indent -= 1
        return variable

    def read_int32s(self, name: str) -> str:
        """Lists of brokers: the few that there are come from a cache, and many are empty."""
        n, variable = self.fresh("n"), self.fresh(name)
        self.run.append(("B" if self.is_flexible else "i", n))
        self.flush()
        self.line(f"if {n} == {int(self.is_flexible)}:")
        self.line(f"    {variable} = ()")
        self.line("else:")
        self.indent += 1
        self.check_length(n, name, is_nullable=False, is_string=False)
        self.line(f"end = p + {self.length(n)} * 4")
        self.line(f"{variable} = int32s[{'bytes(data[p:end])' if self.has_records else 'data[p:end]'}]")
        self.line("p = end")
        self.indent -= 1
        return variable

    def read_loop(self, element: Kind, name: str, n: str, variable: str) -> None:
        size = max(1, size_min(element, self.version, self.is_flexible))
        self.line(f"if {self.length(n)} * {size} > limit - p:")
        self.line(f"    raise_short({name!r})")
        self.line(f"{variable} = []")
        self.line(f"for _ in range({self.length(n)}):")
        self.indent += 1
        value = self.read_kind(element, name, is_nullable=False)
        self.flush()
        self.line(f"{variable}.append({value})")
        self.indent -= 1
        if not isinstance(element, Nested):
            self.line(f"{variable} = tuple({variable})")


def _has_records(struct_type: type[msgspec.Struct]) -> bool:
    """Whether record batches may stand somewhere in the struct."""
    for field in fields_of(struct_type):
        inner = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(inner, RecordBytes) or (isinstance(inner, Nested) and _has_records(inner.struct)):
            return True
    return False
