"""Asks one broker who it is, who the others are and who is controller; one connection, no event loop."""

import socket
import struct
from dataclasses import dataclass
from typing import Any

from ottla.model.errors import MalformedRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.connection import ClientSide
from ottla.wire.fields import Request

VERSION = 9


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The cluster as one broker sees it."""

    brokers: frozenset[int]
    controller: int


def see_cluster(host: str, port: int, timeout_s: float = 1.0) -> ClusterSeen | None:
    """What that broker's metadata say; None while it does not answer."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            response = ask(connection, request, VERSION, "ottla-launch")
    except (OSError, MalformedRequest):
        return None
    return ClusterSeen(frozenset(broker.node_id for broker in response.brokers), response.controller_id)


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
