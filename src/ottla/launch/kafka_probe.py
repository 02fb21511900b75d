"""Asks one broker who it is, who the others are and who is controller; one connection, no event loop."""

import socket
import struct
from dataclasses import dataclass

from ottla.model.errors import MalformedRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataResponse
from ottla.wire.headers import decode_response, frame_request

VERSION = 9


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The cluster as one broker tells it."""

    brokers: frozenset[int]
    controller: int


def see_cluster(host: str, port: int, timeout_s: float = 1.0) -> ClusterSeen | None:
    """What that broker's metadata say; None while it does not answer."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(b"".join(frame_request(request, VERSION, 1, "ottla-launch")))
            (size,) = struct.unpack(">i", _receive(connection, 4))
            _, response = decode_response(MetadataResponse, VERSION, _receive(connection, size))
    except (OSError, MalformedRequest):
        return None
    return ClusterSeen(frozenset(broker.node_id for broker in response.brokers), response.controller_id)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the broker hung up")
        received += part
    return bytes(received)
