"""Random messages without hypothesis: quick enough to make a hundred thousand of them."""

from random import Random
from typing import Any

import msgspec

from ottla.wire.compiler.layout import Array, Blob, Kind, Nested, Text, fields_of
from ottla.wire.fields import Fixed, RecordBytes

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}


def random_struct(struct: type[msgspec.Struct], version: int, rng: Random) -> Any:
    """A struct with the fields of one version set to anything."""
    values = {}
    for field in fields_of(struct):
        if field.is_in(version) and rng.random() < 0.8:
            is_null = field.is_nullable(version) and rng.random() < 0.3
            values[field.name] = None if is_null else _value(field.kind, version, rng)
    return struct(**values)


def _value(kind: Kind, version: int, rng: Random) -> Any:
    match kind:
        case Fixed():
            return _number(kind, rng)
        case Text():
            return "".join(rng.choices("abcü\U0001f427", k=rng.choice((0, 1, 5, 130))))
        case Blob() | RecordBytes():
            return rng.randbytes(rng.choice((0, 1, 5, 130)))
        case Nested():
            return random_struct(kind.struct, version, rng)
        case Array():
            items = [_value(kind.element, version, rng) for _ in range(rng.choice((0, 1, 2, 3)))]
            return items if isinstance(kind.element, Nested) else tuple(items)


def _number(kind: Fixed, rng: Random) -> Any:
    match kind.letter:
        case "?":
            return rng.random() < 0.5
        case "d":
            return rng.uniform(-1e9, 1e9)
        case "16s":
            return rng.choice((bytes(16), rng.randbytes(16)))
        case "H":
            return rng.getrandbits(16)
        case letter:
            limit = 1 << (_BITS[letter] - 1)
            return rng.choice((0, 1, -1, limit - 1, -limit, rng.randrange(-limit, limit)))


_HOSTILE = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    bytes(8),
)


def mutated(message: bytes, rng: Random) -> bytes:
    """The bytes with one to four things done to them."""
    out = bytearray(message)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                hostile = rng.choice(_HOSTILE)
                out[at : at + len(hostile)] = hostile
            case 3:
                out[at:at] = rng.choice(_HOSTILE)
            case 4:
                del out[at : at + rng.randint(1, 8)]
            case _:
                start = rng.randrange(len(out) + 1)
                out[at:at] = out[start : start + rng.randint(1, 40)]
    return bytes(out)
