"""Requests are handled and answered in their order, and nobody is owed too much."""

import pytest

from ottla.broker.clients.connections import OWED_BYTES_MAX, OWED_REQUESTS_MAX, Connection, Connections
from ottla.broker.clients.request import Request
from ottla.broker.outputs import Close, Output, PauseReading, ResumeReading, TakeHeld, Write


def a_connection() -> tuple[Connection, list[Output]]:
    outputs: list[Output] = []
    return Connection(7, "PLAINTEXT", "host", outputs), outputs


PRODUCE, FETCH, METADATA = b"\0\0...", b"\0\1...", b"\0\3..."


def a_request(connection: Connection, size: int = 10, frame: bytes = METADATA) -> Request:
    request = Request(connection, frame[1], 0, 1, "client", size)
    connection.accept(request)
    return request


def test_a_reply_waits_for_those_before_it_and_goes_out_with_them() -> None:
    connection, outputs = a_connection()
    first, second, third = (a_request(connection) for _ in range(3))

    second.reply_encoded([b"2"])
    assert outputs == []
    first.reply_encoded([b"1"])
    third.reply_encoded([b"3"])

    assert outputs == [Write(7, [b"1", b"2", b"3"])]
    assert connection.owed_bytes == 0


def test_answers_that_follow_each_other_in_a_turn_leave_in_one_piece_and_others_do_not() -> None:
    outputs: list[Output] = []
    one, other = (Connection(number, "PLAINTEXT", "host", outputs) for number in (7, 8))

    for number, connection in enumerate((one, one, other, one)):
        a_request(connection).reply_encoded([b"%d" % number])

    assert outputs == [Write(7, [b"0", b"1"]), Write(8, [b"2"]), Write(7, [b"3"])]


def test_a_request_without_an_answer_only_gives_up_its_place() -> None:
    connection, outputs = a_connection()
    silent, loud = a_request(connection), a_request(connection)

    loud.reply_encoded([b"x"])
    silent.reply_nothing()

    assert outputs == [Write(7, [b"x"])]


def test_hanging_up_waits_for_the_answers_owed_before() -> None:
    connection, outputs = a_connection()
    good, bad, never = (a_request(connection) for _ in range(3))

    bad.hang_up("rubbish")
    assert outputs == []
    good.reply_encoded([b"ok"])

    assert outputs == [Write(7, [b"ok"]), Close(7, "rubbish")]
    never.reply_encoded([b"too late"])
    assert len(outputs) == 2
    assert never.is_abandoned


def test_nothing_more_is_taken_from_a_client_that_will_be_hung_up_on() -> None:
    connection, _ = a_connection()
    a_request(connection)

    a_request(connection).hang_up("rubbish")

    assert connection.is_doomed
    assert not connection.is_closed


def test_a_client_that_is_owed_too_many_answers_is_read_from_no_more_until_half_are_sent() -> None:
    connection, outputs = a_connection()
    requests = [a_request(connection) for _ in range(OWED_REQUESTS_MAX + 1)]
    assert outputs == [PauseReading(7)]

    for request in requests[: OWED_REQUESTS_MAX // 2]:
        request.reply_encoded([b"x"])
    assert ResumeReading(7) not in outputs
    requests[OWED_REQUESTS_MAX // 2].reply_encoded([b"x"])

    assert outputs[-1] == ResumeReading(7)


def test_a_client_that_is_owed_too_many_bytes_is_read_from_no_more() -> None:
    connection, outputs = a_connection()
    large = a_request(connection, OWED_BYTES_MAX + 1)
    assert outputs == [PauseReading(7)]

    large.reply_encoded([b"x"])

    assert outputs == [PauseReading(7), Write(7, [b"x"]), ResumeReading(7)]


def test_a_lost_client_gets_nothing_more() -> None:
    outputs: list[Output] = []
    connections = Connections(outputs, "CONTROL")
    connection = connections.connected(1, "CONTROL", "host")
    request = a_request(connection)

    connections.lost(1)
    request.reply_encoded([b"x"])

    assert outputs == []
    assert connection.is_privileged
    assert connections.get(1) is None
    assert connection.owed_bytes == 0


@pytest.mark.parametrize(
    ("before", "frame", "waits"),
    [
        ([], METADATA, False),
        ([PRODUCE], PRODUCE, False),
        ([PRODUCE, PRODUCE], PRODUCE, False),
        ([PRODUCE], METADATA, True),
        ([FETCH], PRODUCE, True),
        ([FETCH], FETCH, True),
        ([FETCH], b"", True),
    ],
)
def test_a_request_waits_for_those_before_it_unless_all_of_them_produce(
    before: list[bytes], frame: bytes, waits: bool
) -> None:
    connection, _ = a_connection()
    for earlier in before:
        a_request(connection, frame=earlier)

    assert connection.must_wait(frame) is waits


def test_what_was_held_back_goes_on_in_its_order_when_those_before_it_are_answered() -> None:
    connection, outputs = a_connection()
    first, second = (a_request(connection, frame=PRODUCE) for _ in range(2))
    for frame in (METADATA, PRODUCE, FETCH):
        assert connection.must_wait(frame)
        connection.hold(frame)

    first.reply_encoded([b"1"])
    assert (outputs[1:], connection.next_held()) == ([Write(7, [b"1"])], None)
    second.reply_encoded([b"2"])
    assert outputs[-1] == TakeHeld(7)
    assert connection.next_held() == METADATA
    third = a_request(connection)
    assert connection.next_held() is None
    third.reply_encoded([b"3"])
    assert connection.next_held() == PRODUCE
    a_request(connection, frame=PRODUCE)

    assert connection.next_held() is None, "a fetch does not overtake a produce request"
    assert connection.owed_bytes == 10 + len(FETCH)


def test_nothing_more_is_read_while_a_request_is_held_back() -> None:
    connection, outputs = a_connection()
    parked = a_request(connection, frame=FETCH)
    connection.hold(METADATA)
    connection.hold(METADATA)
    assert outputs == [PauseReading(7)]

    parked.reply_encoded([b"x"])
    assert connection.next_held() == METADATA
    a_request(connection).reply_encoded([b"y"])
    assert ResumeReading(7) not in outputs
    assert connection.next_held() == METADATA

    assert outputs[-1] == ResumeReading(7)
    assert outputs.count(PauseReading(7)) == 1


def test_nothing_is_kept_for_a_lost_client() -> None:
    connection, outputs = a_connection()
    parked = a_request(connection, frame=FETCH)
    connection.hold(METADATA)

    connection.lost()
    parked.reply_encoded([b"x"])

    assert (connection.next_held(), connection.owed_bytes, outputs) == (None, 0, [PauseReading(7)])
