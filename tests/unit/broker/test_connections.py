"""Replies leave in the order of their requests, and nobody is owed too much."""

from ottla.broker.connections import OWED_BYTES_MAX, OWED_REQUESTS_MAX, Connection, Connections
from ottla.broker.outputs import Close, Output, PauseReading, ResumeReading, Write
from ottla.broker.request import Request


def a_connection() -> tuple[Connection, list[Output]]:
    outputs: list[Output] = []
    return Connection(7, "PLAINTEXT", "host", outputs), outputs


def a_request(connection: Connection, size: int = 10) -> Request:
    request = Request(connection, 3, 0, 1, "client", size)
    connection.accept(request)
    return request


def test_a_reply_waits_for_those_before_it_and_goes_out_with_them() -> None:
    connection, outputs = a_connection()
    first, second, third = (a_request(connection) for _ in range(3))

    second.reply_encoded([b"2"])
    assert outputs == []
    first.reply_encoded([b"1"])
    third.reply_encoded([b"3"])

    assert outputs == [Write(7, [b"1", b"2"]), Write(7, [b"3"])]
    assert connection.owed_bytes == 0


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
    assert connections.owed_requests() == 0
