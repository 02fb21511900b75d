"""Check that records fill their batch exactly, without reading each of them.

The lengths of all records are followed from the first to the end of the batch; neighbours of equal length are
compared in one go. Only the first and the last record are read whole: reading all would cost more than
everything else that is done to a batch.
"""

from ottla.records.batch import Buffer, CorruptRecords
from ottla.records.record import RECORD_SIZE_MIN, read_frame
from ottla.records.varint import read_varint

_MORE = 0x80
"""The bit of a varint's byte that means that another follows."""
_TWO_BYTES_MAX = 0x3FFF
_TWO_BYTES_LENGTH_MAX = 8191

_RUN_MIN = 6
"""With fewer records left a comparison in one go costs more than it saves."""
_RUN_AT_FIRST = 16
"""How many are compared at first; twice as many each further time."""


def offset_deltas(area: Buffer, position: int, end: int, count: int) -> tuple[int, int]:
    """The offset deltas of the first and the last of ``count`` records, which fill the area up to ``end``.

    Raises ``CorruptRecords`` if they do not, or if one of these two is malformed.
    """
    view = area if isinstance(area, memoryview) else memoryview(area)
    first, first_end, last = position, -1, position
    left, size_before = count, 0
    try:
        while left:
            last = position
            byte = view[position]
            if byte < _MORE:
                size = 1 + (byte >> 1)
            elif (second := view[position + 1]) < _MORE:
                size = 2 + ((byte + (second - 1 << 7)) >> 1)
            else:
                length, behind = read_varint(view, position)
                size = behind - position + length
            position += size
            left -= 1
            if byte & 1 or size < RECORD_SIZE_MIN or position > end:
                raise CorruptRecords(f"a record of {size} bytes does not fit its batch")
            if size == size_before:
                if left >= _RUN_MIN:
                    run = _followers_of_equal_size(view, last, size, min(left, (end - position) // size))
                    position += run * size
                    left -= run
                    last = position - size
            elif first_end < 0:
                first_end = position
            size_before = size
    except IndexError:
        raise CorruptRecords("a record has no length") from None
    if position != end:
        raise CorruptRecords(f"{end - position} bytes are left over behind the last record")
    return _offset_delta(view, first, first_end), _offset_delta(view, last, end)


def _followers_of_equal_size(view: memoryview, start: int, size: int, limit: int) -> int:
    """How many records behind the one at ``start`` have its size, up to ``limit``."""
    width = 1
    while view[start + width - 1] >= _MORE:
        width += 1
    found, window = 0, _RUN_AT_FIRST
    while found < limit:
        window = min(window, limit - found)
        same = window
        begin = start + (found + 1) * size
        behind = begin + (window - 1) * size + 1
        for at in range(width):
            column = view[begin + at : behind + at : size].tobytes()
            same = min(same, window - len(column.lstrip(view[start + at : start + at + 1])))
        found += same
        if same < window:
            break
        window *= 2
    return found


def _offset_delta(view: memoryview, start: int, end: int) -> int:
    """The offset delta of a record whose parts fill it exactly; raises ``CorruptRecords`` for any other."""
    if end - start <= _TWO_BYTES_LENGTH_MAX:
        try:
            delta = _offset_delta_if_short(view, start, end)
        except IndexError:  # a part ends behind the view
            delta = -1
        if delta >= 0:
            return delta
    record = bytes(view[start:end])
    return read_frame(record, 0).offset_delta


def _offset_delta_if_short(view: memoryview, start: int, end: int) -> int:
    """The same, or -1 for a record that is not plain: no headers, short key, soon after the first.

    Raises ``IndexError`` if a part ends behind the view.
    """
    at = start + 2
    if view[start] >= _MORE:
        if view[start + 1] >= _MORE:
            return -1
        at += 1
    if view[at] >= _MORE:
        at += 1
        if view[at] >= _MORE:
            return -1
    delta = view[at + 1]
    at += 2
    if delta >= _MORE:
        delta += view[at] - 1 << 7
        at += 1
    key_length = view[at]
    at += 1 + (key_length >> 1)
    if at + 2 > end or delta > _TWO_BYTES_MAX or key_length >= _MORE or (key_length & 1 and key_length != 1):
        return -1
    value_length = view[at]
    if value_length >= _MORE:
        at += 1
        value_length += view[at] - 1 << 7
    if value_length & 1 or at + 2 + (value_length >> 1) != end or view[end - 1]:
        return -1
    return delta >> 1 if not delta & 1 else -1
