"""Asks one broker who it is, who the others are and who is controller; one connection, no event loop."""

import secrets
import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Any

from ottla.model.errors import MalformedRequest
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.connection import ClientSide
from ottla.wire.fields import Request
from ottla.wire.login import ClientLogin, LoginRefused, version_of

VERSION = 9


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The cluster as one broker sees it."""

    brokers: frozenset[int]
    controller: int


@dataclass(frozen=True, slots=True)
class Way:
    """How to come in where the doors are closed."""

    tls: ssl.SSLContext
    login: SaslLogin


def see_cluster(host: str, port: int, timeout_s: float = 1.0, way: Way | None = None) -> ClusterSeen | None:
    """What that broker's metadata say; None while it does not answer."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    try:
        with _connected(host, port, timeout_s, way) as connection:
            response = ask(connection, request, VERSION, "ottla-launch")
    except (OSError, MalformedRequest, LoginRefused):
        return None
    return ClusterSeen(frozenset(broker.node_id for broker in response.brokers), response.controller_id)


def _connected(host: str, port: int, timeout_s: float, way: Way | None) -> socket.socket:
    plain = socket.create_connection((host, port), timeout_s)
    if way is None:
        return plain
    try:
        connection = way.tls.wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise
    try:
        login = ClientLogin(way.login, lambda: secrets.token_urlsafe(18))
        request: Request | None = login.first()
        while request is not None:
            request = login.answered(ask(connection, request, version_of(request), "ottla-launch"))
    except BaseException:
        connection.close()
        raise
    return connection


def ask(connection: socket.socket, request: Request, version: int, client_id: str) -> Any:
    """Send one request and wait for its response; the socket's time-out limits each wait."""
    conversation: ClientSide[None] = ClientSide(client_id)
    connection.sendall(b"".join(conversation.send(request, version, None, deadline=0)))
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return conversation.receive(_receive(connection, size))[1]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the broker hung up")
        received += part
    return bytes(received)
