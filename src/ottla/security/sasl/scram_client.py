"""The client's side of SCRAM."""

import base64
import hmac
import re
from typing import Final

from ottla.security.sasl.outcome import InvalidCredentials
from ottla.security.sasl.scram import (
    ITERATIONS_MIN,
    credential_of,
    decoded,
    keyed,
    salted_password,
    xor,
)
from ottla.security.secret import Secret

ITERATIONS_MAX: Final = 1_000_000
"""More would let a false broker keep us busy for seconds."""
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[^,]+),i=(?P<count>\d{1,9})"
)


class ScramClient:
    """One login; ``nonce`` is fresh for each."""

    __slots__ = ("_bare", "_nonce", "_password", "_signature", "name")

    def __init__(self, mechanism: str, user: str, password: Secret, nonce: str) -> None:
        self.name = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def evaluate(self, token: bytes) -> bytes | None:
        """Our proof, then nothing once the broker has shown that it knows the user as well."""
        try:
            text = token.decode()
            if self._signature is None:
                return self._proof(text)
            is_ours = hmac.compare_digest(decoded(text.removeprefix("v=").partition(",")[0]), self._signature)
        except ValueError:
            raise InvalidCredentials("the broker's message is not SCRAM's") from None
        if not is_ours:
            raise InvalidCredentials("the broker does not know the user's password")
        return None

    def _proof(self, text: str) -> bytes:
        found = _SERVER_FIRST.match(text)
        if found is None:
            raise InvalidCredentials("the broker's first message is not SCRAM's")
        if not found["nonce"].startswith(self._nonce) or len(found["nonce"]) == len(self._nonce):
            raise InvalidCredentials("the broker's nonce does not continue ours")
        count = int(found["count"])
        if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
            raise InvalidCredentials(f"the broker asks for {count} iterations")
        salt = decoded(found["salt"])
        salted = salted_password(self.name, self._password, salt, count)
        known = credential_of(self.name, salted, salt, count)
        without_proof = f"c=biws,r={found['nonce']}"
        proved = f"{self._bare},{text},{without_proof}".encode()
        client_key = keyed(self.name, salted, b"Client Key")
        proof = xor(client_key, keyed(self.name, known.stored_key, proved))
        self._signature = keyed(self.name, known.server_key, proved)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
