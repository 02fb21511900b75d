"""What is read from a certificate: its subject as Java writes it, the name of a client, and when it ends.

``X500Principal.getName()`` follows RFC 2253 in its own way, and ACLs are written with its text: the last
name first, keywords for nine types only, all others as ``1.2.3=#<hex of their DER>``.
"""

from calendar import timegm
from collections.abc import Iterator
from typing import Final

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_VALIDITY, _SUBJECT = 3, 4
_SHORT_TIME: Final = 0x17
_TEXT_TAGS: Final = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
"""UTF8, Printable, T61, IA5, General and BMP strings; Java reads the bytes of all as UTF-8."""
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED: Final = ',=+<>#;"\\'


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, which somebody has verified before."""
    _, names = next(_elements(_fields(certificate)[_SUBJECT]))
    return ",".join(_relative(name) for _, name in reversed(list(_elements(names))))


def end_of(certificate: bytes) -> int:
    """When a certificate ends, in seconds since 1970."""
    _, times = next(_elements(_fields(certificate)[_VALIDITY]))
    _, (tag, text, _) = _parts(times)
    digits = text.decode("ascii").rstrip("Z")
    if tag == _SHORT_TIME:
        digits = ("19" if digits >= "50" else "20") + digits
    numbers = (int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2)))
    return timegm(numbers)


def _fields(certificate: bytes) -> list[bytes]:
    """Serial number, algorithm, issuer, validity, subject and more."""
    _, body = next(_elements(certificate))
    _, to_be_signed = next(_elements(body))
    return [whole for tag, _, whole in _parts(to_be_signed) if tag != _VERSION]


def _relative(name: bytes) -> str:
    return "+".join(_attribute(pair) for _, pair in _elements(name))


def _attribute(pair: bytes) -> str:
    (_, identifier, _), (tag, value, whole) = _parts(pair)
    oid = _oid(identifier)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or oid}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    shown = "".join(f"\\{c}" if c in _ESCAPED else "\\00" if c == "\0" else c for c in text)
    middle = shown.strip(" \r")
    before, _, after = shown.partition(middle) if middle else (shown, "", "")
    return _behind_slashes(before) + middle + _behind_slashes(after)


def _behind_slashes(blanks: str) -> str:
    return "".join(f"\\{blank}" for blank in blanks)


def _oid(encoded: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in encoded:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    return ((tag, content) for tag, content, _ in _parts(der))


def _parts(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and the whole of each element."""
    at = 0
    while at < len(der):
        begin, tag, length = at, der[at], der[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(der[at : at + count], "big")
            at += count
        yield tag, der[at : at + length], der[begin : at + length]
        at += length
