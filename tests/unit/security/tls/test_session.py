"""TLS connections without sockets."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.config.tls.contexts import (
    Material,
    client_context,
    read_material,
    server_context,
    why_not_each_other,
)
from ottla.config.tls.settings import TlsSettings, read_tls
from ottla.security.tls.session import SENT_BYTES_MAX, TlsFailed, TlsSession
from support.security.tls import files_in, of_alice, stranger


@pytest.fixture
def settings(tmp_path: Path) -> TlsSettings:
    return settings_of(tmp_path)


def settings_of(folder: Path, **more: str) -> TlsSettings:
    problems: list[str] = []
    given = {name: str(value) for name, value in files_in(folder).settings.items()}
    settings = read_tls({**given, **more}.get, problems)
    assert problems == []
    return settings


def pair(server: TlsSettings, client: TlsSettings, host: str = "localhost") -> tuple[TlsSession, TlsSession]:
    one = TlsSession(server_context(server, read_material(server)))
    other = TlsSession(client_context(client, read_material(client)), host)
    return one, other


def shake_hands(server: TlsSession, client: TlsSession) -> None:
    for _ in range(3):
        for one, other in ((client, server), (server, client)):
            try:
                one.handshake()
            finally:
                other.received(one.take())


def read(session: TlsSession, size: int = 1000) -> bytes:
    buffer = bytearray(size)
    return bytes(buffer[: session.read_into(memoryview(buffer))])


def test_what_one_side_writes_the_other_reads(settings: TlsSettings) -> None:
    server, client = pair(settings, settings)
    shake_hands(server, client)

    for piece in client.encrypt([b"one ", memoryview(b"two"), bytearray(b" three")]):
        server.received(piece)

    assert read(server) == b"one two three"
    assert read(server) == b""


def test_small_parts_leave_in_one_record(settings: TlsSettings) -> None:
    server, client = pair(settings, settings)
    shake_hands(server, client)

    joined = b"".join(client.encrypt([b"x"] * 100))

    assert len(joined) < 100 + 50


def test_large_parts_leave_in_pieces_and_arrive_whole(settings: TlsSettings) -> None:
    server, client = pair(settings, settings)
    shake_hands(server, client)
    large = bytes(range(256)) * (3 * SENT_BYTES_MAX // 256)

    pieces = list(client.encrypt([b"before", large, b"behind"]))
    for piece in pieces:
        server.received(piece)

    assert max(map(len, pieces)) < 2 * SENT_BYTES_MAX
    assert read(server, len(large) + 100) == b"before" + large + b"behind"


def test_a_reader_with_little_room_gets_the_rest_later(settings: TlsSettings) -> None:
    server, client = pair(settings, settings)
    shake_hands(server, client)
    for piece in client.encrypt([b"0123456789"]):
        server.received(piece)

    assert [read(server, 4) for _ in range(4)] == [b"0123", b"4567", b"89", b""]


def test_the_end_is_told(settings: TlsSettings) -> None:
    server, client = pair(settings, settings)
    shake_hands(server, client)

    client.end()
    server.received(client.take())

    assert read(server) == b""
    assert server.is_ended


def test_a_host_that_the_certificate_does_not_name_is_refused(settings: TlsSettings) -> None:
    server, client = pair(settings, settings, "kafka.example")

    with pytest.raises(TlsFailed, match=r"kafka\.example"):
        shake_hands(server, client)


def test_it_is_not_if_names_are_not_looked_at(settings: TlsSettings, tmp_path: Path) -> None:
    careless = settings_of(tmp_path, **{"ssl.endpoint.identification.algorithm": ""})
    server, client = pair(settings, careless, "kafka.example")

    shake_hands(server, client)

    assert server.is_ready
    assert client.is_ready


def test_a_stranger_s_certificate_is_refused(settings: TlsSettings, tmp_path: Path) -> None:
    (tmp_path / "broker.pem").write_text(stranger().issue("broker", ["localhost"]).both)
    server, client = pair(settings, settings)

    with pytest.raises(TlsFailed, match="not accepted"):
        shake_hands(server, client)


def test_a_client_that_must_show_a_certificate_does(tmp_path: Path) -> None:
    strict = settings_of(tmp_path, **{"ssl.client.auth": "required"})
    alice = settings_of(tmp_path, **{"ssl.keystore.location": str(tmp_path / "alice.pem")})
    server, client = pair(strict, alice)

    shake_hands(server, client)

    assert server.certificate == ssl.PEM_cert_to_DER_cert(of_alice().certificate)


def test_one_that_does_not_is_refused(tmp_path: Path) -> None:
    strict = settings_of(tmp_path, **{"ssl.client.auth": "required"})
    server = TlsSession(server_context(strict, read_material(strict)))
    trusting = Material(None, (tmp_path / "ca.pem").read_bytes())
    client = TlsSession(client_context(strict, trusting), "localhost")

    with pytest.raises(TlsFailed, match=r"no certificate, and ssl\.client\.auth=required"):
        shake_hands(server, client)


def test_a_client_that_comes_again_by_its_ticket_still_has_its_certificate(tmp_path: Path) -> None:
    strict = settings_of(tmp_path, **{"ssl.client.auth": "required"})
    alice = settings_of(tmp_path, **{"ssl.keystore.location": str(tmp_path / "alice.pem")})
    context = server_context(strict, read_material(strict))
    clients = client_context(alice, read_material(alice))
    ticket: ssl.SSLSession | None = None

    for is_again in (False, True):
        server, incoming, outgoing = TlsSession(context), ssl.MemoryBIO(), ssl.MemoryBIO()
        client = clients.wrap_bio(incoming, outgoing, server_hostname="localhost", session=ticket)
        for _ in range(3):
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
            server.received(outgoing.read())
            server.handshake()
            incoming.write(server.take())
        with suppress(ssl.SSLWantReadError):
            client.read(1)  # The ticket comes behind the handshake.
        ticket = client.session
        assert client.session_reused == is_again
        assert server.certificate == ssl.PEM_cert_to_DER_cert(of_alice().certificate)


def test_versions_without_one_in_common_are_refused(tmp_path: Path) -> None:
    old = settings_of(tmp_path, **{"ssl.enabled.protocols": "TLSv1.2"})
    new = settings_of(tmp_path, **{"ssl.enabled.protocols": "TLSv1.3"})
    server, client = pair(old, new)

    with pytest.raises(TlsFailed, match=r"ssl\.enabled\.protocols"):
        shake_hands(server, client)


def test_the_cipher_suite_is_the_one_that_is_listed(tmp_path: Path) -> None:
    listed = settings_of(tmp_path, **{"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"})
    server, client = pair(listed, settings_of(tmp_path))

    shake_hands(server, client)

    assert server.cipher == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x16\x03\x01\xff\xff" + bytes(64)]
)
def test_what_is_no_tls_is_refused(settings: TlsSettings, garbage: bytes) -> None:
    server = TlsSession(server_context(settings, read_material(settings)))
    server.received(garbage)

    with pytest.raises(TlsFailed):
        server.handshake()


def test_brokers_find_out_beforehand_whether_they_accept_each_other(settings: TlsSettings) -> None:
    material = read_material(settings)

    assert why_not_each_other(settings, material, "127.0.0.1") is None
    assert "10.0.0.1" in (why_not_each_other(settings, material, "10.0.0.1") or "")
