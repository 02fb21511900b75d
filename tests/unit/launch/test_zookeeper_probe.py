"""The question whether a server grants sessions, put to servers that do not."""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor

from ottla.launch.ports import LOOPBACK, free_ports
from ottla.launch.zookeeper_probe import accepts_sessions, four_letter_word


def asked(answer: bytes) -> bool:
    """Whether a server that answers every connect request like this counts as granting sessions."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)

    with socket.create_server((LOOPBACK, 0)) as server, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve, server)
        accepted = accepts_sessions(LOOPBACK, server.getsockname()[1], timeout_s=5)
        served.result()
    return accepted


def test_server_that_hangs_up_grants_no_session() -> None:
    assert not asked(b"")


def test_session_number_zero_is_a_refusal() -> None:
    assert not asked(struct.pack(">iiiqi16s", 36, 0, 0, 0, 16, bytes(16)))


def test_answer_cut_short_grants_no_session() -> None:
    assert not asked(struct.pack(">ii", 36, 0))


def test_closed_port_grants_no_session_and_knows_no_words() -> None:
    port = free_ports(1)[0]

    assert not accepts_sessions(LOOPBACK, port, timeout_s=5)
    assert four_letter_word(LOOPBACK, port, "srvr") == ""
