"""One reused buffer cuts frames, whatever pieces arrive, and takes memory only for what came."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import MalformedRequest
from ottla.wire.framing import GROWTH_BYTES, ROOM_BYTES_MAX, START_BYTES, ReceiveBuffer


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(buffer: ReceiveBuffer, stream: bytes, piece_bytes_max: int) -> list[bytes]:
    """Deliver a stream in pieces no larger than the room allows; the frames that came of it."""
    frames = []
    while stream:
        room = buffer.get_buffer()
        assert len(room), "there is always room"
        count = min(len(room), len(stream), piece_bytes_max)
        room[:count] = stream[:count]
        stream = stream[count:]
        buffer.received(count)
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(frame))
    return frames


bodies = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [START_BYTES - 5, START_BYTES - 4, START_BYTES, START_BYTES + 1, 3 * START_BYTES]
        ).map(lambda size: bytes(i % 251 for i in range(size))),
    ),
    max_size=6,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(bodies, st.sampled_from([1, 3, 100, 5_000, 10**9]))
def test_frames_come_out_whole_and_in_order_however_the_bytes_arrive(bodies: list[bytes], piece: int) -> None:
    piece = max(piece, sum(map(len, bodies)) // 2_000)

    assert feed(ReceiveBuffer(), b"".join(map(framed, bodies)), piece) == bodies


def test_a_frame_larger_than_the_first_step_grows_the_buffer_as_it_arrives() -> None:
    body = bytes(range(256)) * (3 * GROWTH_BYTES // 256)
    buffer = ReceiveBuffer()

    assert feed(buffer, framed(body), 100_000) == [body]

    assert buffer.capacity == len(body) + 4


def test_a_size_that_promises_much_takes_memory_only_as_the_bytes_come() -> None:
    buffer = ReceiveBuffer()

    assert feed(buffer, struct.pack(">i", 90 * 1024 * 1024) + bytes(1000), 100) == []
    buffer.get_buffer()

    assert buffer.capacity == GROWTH_BYTES


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_below_zero_or_above_the_limit_is_malformed(size: int) -> None:
    with pytest.raises(MalformedRequest):
        feed(ReceiveBuffer(frame_bytes_max=1000), struct.pack(">i", size), 4)


def test_a_frame_of_exactly_the_limit_passes() -> None:
    body = bytes(1000)

    assert feed(ReceiveBuffer(frame_bytes_max=1000), framed(body), 10**9) == [body]


def test_no_more_is_asked_for_than_the_rest_of_a_big_frame() -> None:
    buffer = ReceiveBuffer()
    feed(buffer, struct.pack(">i", 10 * START_BYTES) + b"x", 10**9)

    assert len(buffer.get_buffer()) == 10 * START_BYTES - 1


def test_a_buffer_that_grew_stays_for_the_next_frame_and_is_given_back_on_idle() -> None:
    buffer = ReceiveBuffer()
    feed(buffer, framed(bytes(10 * START_BYTES)), 10**9)
    grown = buffer.capacity
    feed(buffer, framed(b"small"), 10**9)
    assert buffer.capacity == grown

    buffer.give_back()

    assert buffer.capacity == START_BYTES
    assert feed(buffer, framed(b"again"), 10**9) == [b"again"]


def test_who_keeps_filling_the_room_is_given_more_up_to_a_limit_and_a_silent_one_gives_it_back() -> None:
    buffer = ReceiveBuffer()
    bodies = [bytes([number % 251]) * 16_000 for number in range(200)]
    rooms = [len(buffer.get_buffer())]

    assert feed(buffer, b"".join(map(framed, bodies)), 10**9) == bodies

    rooms.append(len(buffer.get_buffer()))
    assert rooms == [START_BYTES, ROOM_BYTES_MAX]
    assert buffer.capacity <= 2 * ROOM_BYTES_MAX
    buffer.give_back()
    assert len(buffer.get_buffer()) == buffer.capacity == START_BYTES


def test_who_sends_little_at_a_time_keeps_a_small_buffer() -> None:
    buffer = ReceiveBuffer()

    feed(buffer, framed(bytes(16_000)) * 50, 20_000)

    assert buffer.capacity <= 2 * START_BYTES


def test_half_a_frame_is_not_given_back() -> None:
    buffer = ReceiveBuffer()
    body = bytes(range(200)) * 1000
    stream = framed(body)
    feed(buffer, stream[:100_000], 10**9)

    buffer.give_back()

    assert feed(buffer, stream[100_000:], 10**9) == [body]


def test_frames_that_nobody_takes_yet_do_not_stop_the_next_bytes() -> None:
    buffer = ReceiveBuffer()
    stream = framed(b"x" * 1000) * 200
    while stream:
        room = buffer.get_buffer()
        count = min(len(room), len(stream))
        room[:count] = stream[:count]
        stream = stream[count:]
        buffer.received(count)

    taken = 0
    while buffer.next_frame() is not None:
        taken += 1

    assert taken == 200
    assert len(buffer) == 0


@pytest.mark.parametrize("more", [0, 1, 3, 4, 700])
def test_a_frame_that_is_kept_stays_as_it_was_whatever_comes_next(more: int) -> None:
    buffer = ReceiveBuffer()
    first, second = b"a" * 1_000, b"b" * 1_000
    stream = framed(first) + framed(second)
    cut = 4 + len(first) + more
    room = buffer.get_buffer()
    room[:cut] = stream[:cut]
    buffer.received(cut)

    kept = buffer.next_frame()
    buffer.let_go()

    assert feed(buffer, stream[cut:], 10**9) == [second]
    assert feed(buffer, framed(b"c" * START_BYTES), 10**9) == [b"c" * START_BYTES]
    assert kept == first
