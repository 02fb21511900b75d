"""One client's attempts to get in, said as values that two brokers can be compared by."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any

from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest
from support.differential.connection import Connection, Outcome
from support.security.broker import ALICE, ALICES_PASSWORD

Said = tuple[Any, ...] | str


class Talk:
    """A raw connection; every question gives what a client sees, without what differs by chance."""

    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        self.token = b""
        """What came with the last SaslAuthenticate."""
        self.waited_s = 0.0
        """How long the last answer took."""

    def close(self) -> None:
        self._connection.close()

    def bytes(self, data: bytes) -> Said:
        """Send this as it is; the frame that comes back."""
        before = time.monotonic()
        answer = self._connection.exchange(data)
        self.waited_s = time.monotonic() - before
        return answer.value if isinstance(answer, Outcome) else ("frame", answer)

    def frame(self, token: bytes) -> Said:
        """A bare token with its size."""
        return self.bytes(len(token).to_bytes(4, "big") + token)

    def _ask(self, message: Any, version: int) -> Any:
        said = self.bytes(self._connection.framed(message, version))
        return said if isinstance(said, str) else self._connection.decoded(message, version, said[1])

    def versions(self, version: int = 3, name: str = "judge") -> Said:
        """ApiVersions."""
        message = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        response = (
            self._ask(message, 3 if version > 4 else version) if version <= 4 else self._beyond(version)
        )
        return response if isinstance(response, str) else ("versions", response.error_code)

    def _beyond(self, version: int) -> Any:
        """A version that nobody has is answered in version 0."""
        framed = bytearray(self._connection.framed(ApiVersionsRequest(client_software_name="judge"), 3))
        framed[6:8] = version.to_bytes(2, "big")
        said = self.bytes(bytes(framed))
        return said if isinstance(said, str) else self._connection.decoded(ApiVersionsRequest(), 0, said[1])

    def handshake(self, mechanism: str, version: int = 1) -> Said:
        """SaslHandshake."""
        response = self._ask(SaslHandshakeRequest(mechanism=mechanism), version)
        if isinstance(response, str):
            return response
        return ("handshake", response.error_code, *sorted(response.mechanisms))

    def authenticate(self, token: bytes, version: int = 2) -> Said:
        """SaslAuthenticate."""
        response = self._ask(SaslAuthenticateRequest(auth_bytes=token), version)
        if isinstance(response, str):
            return response
        self.token = bytes(response.auth_bytes)
        lifetime = response.session_lifetime_ms
        return ("authenticate", response.error_code, response.error_message, lifetime, len(self.token) > 0)

    def metadata(self, version: int = 9) -> Said:
        """Metadata of no topic: whether it is answered."""
        response = self._ask(MetadataRequest(topics=[]), version)
        return response if isinstance(response, str) else ("metadata", len(response.brokers) > 0)

    def fate(self) -> Said:
        """What becomes of the connection when a good request comes now."""
        return self.metadata()

    def log_in(self, user: str = ALICE, password: str = ALICES_PASSWORD, version: int = 2) -> Said:
        """PLAIN, as it should be."""
        self.handshake("PLAIN")
        return self.authenticate(f"\0{user}\0{password}".encode(), version)


class ByHand:
    """A SCRAM client of the RFC's text alone, which can be told to lie."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str = "clientnonce") -> None:
        self._hash = "sha256" if mechanism.endswith("256") else "sha512"
        self._password = password
        self.bare = f"n={user},r={nonce}"
        self.signature = b""

    def first(self, gs2: str = "n,,") -> bytes:
        return f"{gs2}{self.bare}".encode()

    def final(self, server_first: bytes, nonce: str | None = None) -> bytes:
        """The proof; with another nonce than the server's, if one is given."""
        said = dict(part.partition("=")[::2] for part in server_first.decode().split(","))
        salt, count = base64.b64decode(said["s"]), int(said["i"])
        without_proof = f"c=biws,r={said['r'] if nonce is None else nonce}"
        proved = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, count)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, client_key).digest()
        signed = hmac.digest(stored, proved, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signed, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self.signature = b"v=" + base64.b64encode(hmac.digest(server_key, proved, self._hash))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
