"""Zig-zag varints, as Kafka's records use them for every number inside a batch."""

from ottla.records.batch import Buffer, CorruptRecords

INT_BYTES_MAX = 5
LONG_BYTES_MAX = 10


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed number, 7 bits a byte, small magnitudes first."""
    rest = value << 1 if value >= 0 else ((-value) << 1) - 1
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def varint_size(value: int) -> int:
    """How many bytes ``write_varint`` takes for it."""
    rest = value << 1 if value >= 0 else ((-value) << 1) - 1
    return max(1, (rest.bit_length() + 6) // 7)


def read_varint(view: Buffer, position: int, bytes_max: int = INT_BYTES_MAX) -> tuple[int, int]:
    """A number and the position behind it."""
    try:
        byte = view[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        rest = byte & 0x7F
        shift = 7
        for at in range(position + 1, position + bytes_max):
            byte = view[at]
            rest |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (rest >> 1) ^ -(rest & 1), at + 1
            shift += 7
    except IndexError:
        raise CorruptRecords("the records end inside a number") from None
    raise CorruptRecords(f"a number of more than {bytes_max} bytes")
