"""Java's properties format: what ``server.properties`` is written in."""

from collections.abc import Mapping

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """The file's keys and values; a key that stands twice keeps its last value."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key, rest = _cut_key(line)
        properties[_unescape(key)] = _unescape(rest)
    return properties


def properties_text(properties: Mapping[str, str]) -> str:
    """The text of a file that ``parse_properties`` reads back as these."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in properties.items())


def _escape(value: str) -> str:
    text = value.replace("\\", "\\\\")
    for letter, raw in _ESCAPES.items():
        text = text.replace(raw, f"\\{letter}")
    return f"\\{text}" if text.startswith(" ") else text


def _logical_lines(text: str) -> list[str]:
    """The lines without comments and blank ones; one that ends in a backslash is joined with the next."""
    lines: list[str] = []
    joined: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANKS)
        if joined is None and (not line or line[0] in "#!"):
            continue
        line = (joined or "") + line
        if _ends_in_odd_backslashes(line):
            joined = line[:-1]
        else:
            lines.append(line)
            joined = None
    if joined:
        lines.append(joined)
    return lines


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _cut_key(line: str) -> tuple[str, str]:
    """The key ends at the first ``=``, ``:`` or blank that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\" or position >= len(text):
            out.append(letter if letter != "\\" else "")
            continue
        escaped = text[position]
        position += 1
        digits = text[position : position + 4]
        if escaped == "u" and len(digits) == 4 and all(d in "0123456789abcdefABCDEF" for d in digits):
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java's escapes are UTF-16 units; a surrogate without its pair is not a character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
