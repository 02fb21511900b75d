"""Lines of text into keys, values and headers, by the rules of Kafka's line reader."""

from dataclasses import dataclass
from typing import Self

from ottla.cli.shared.refusal import CommandRefused, UsageRefused

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class LineReader:
    """How a line is taken apart."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: bytes = b"\t"
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None

    @classmethod
    def of(cls, properties: dict[str, str]) -> Self:
        """From Kafka's property names; an unknown one is refused."""
        left = dict(properties)
        marker = left.pop("null.marker", None)
        reader = cls(
            _flag(left, "parse.key"),
            _flag(left, "parse.headers"),
            _flag(left, "ignore.error"),
            left.pop("key.separator", "\t").encode(),
            left.pop("headers.delimiter", "\t").encode(),
            left.pop("headers.separator", ",").encode(),
            left.pop("headers.key.separator", ":").encode(),
            marker.encode() if marker is not None else None,
        )
        if left:
            raise UsageRefused(f"--property {next(iter(left))} is not known; see --help")
        separators = (reader.key_separator, reader.headers_delimiter, reader.headers_separator)
        if not all((*separators, reader.headers_key_separator)):
            raise UsageRefused("a separator cannot be empty")
        return reader

    def read(self, line: bytes, number: int) -> tuple[bytes | None, bytes | None, Headers]:
        """Key, value and headers of a line."""
        rest = line
        headers: Headers = ()
        if self.parse_headers:
            part, rest = self._cut(rest, self.headers_delimiter, "headers delimiter", number)
            if part is not None and part != self.null_marker:
                headers = self._headers(part, number)
        key: bytes | None = None
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", number)
        return self._or_null(key), self._or_null(rest), headers

    def _cut(self, rest: bytes, separator: bytes, what: str, number: int) -> tuple[bytes | None, bytes]:
        part, found, after = rest.partition(separator)
        if found:
            return part, after
        if self.ignore_error:
            return None, rest
        raise CommandRefused(f"No {what} found on line number {number}: '{rest.decode(errors='replace')}'")

    def _headers(self, text: bytes, number: int) -> Headers:
        headers = []
        for item in text.split(self.headers_separator):
            name, found, value = item.partition(self.headers_key_separator)
            if not found and not self.ignore_error:
                shown = item.decode(errors="replace")
                raise CommandRefused(
                    f"No header key separator found in pair '{shown}' on line number {number}"
                )
            headers.append((name.decode(errors="replace"), self._or_null(value) if found else None))
        return tuple(headers)

    def _or_null(self, part: bytes | None) -> bytes | None:
        return None if part == self.null_marker else part


def _flag(properties: dict[str, str], name: str) -> bool:
    return properties.pop(name, "false").strip().lower() == "true"
