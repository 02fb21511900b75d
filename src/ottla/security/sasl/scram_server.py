"""The broker's side of SCRAM."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final

from ottla.security.sasl.outcome import AuthenticationFailed, InvalidCredentials
from ottla.security.sasl.plain import OTHER_AUTHORIZATION_ID
from ottla.security.sasl.scram import HASHES, ITERATIONS_MIN, ScramCredential, decoded, keyed, xor

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?:{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_TOKEN_LOGIN: Final = ",tokenauth=true"


class ScramServer:
    """One login: the client's first message, then its proof."""

    __slots__ = (
        "_credential",
        "_credentials",
        "_expected_nonce",
        "_mechanism",
        "_nonce",
        "_said",
        "is_complete",
        "user",
    )

    def __init__(
        self, mechanism: str, credentials: Mapping[str, ScramCredential], make_nonce: Callable[[], str]
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = make_nonce
        self._credential: ScramCredential | None = None
        self._expected_nonce = ""
        self._said = ""
        """The client's bare first message and our answer: both are proved."""
        self.user = ""
        self.is_complete = False

    def evaluate(self, token: bytes) -> bytes:
        """Our first message after the client's, our signature after its proof."""
        if self.is_complete:
            raise InvalidCredentials("a message behind the last one")
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise InvalidCredentials("a message that is not UTF-8") from None
        return self._first(text) if self._credential is None else self._final(self._credential, text)

    def _first(self, text: str) -> bytes:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            raise InvalidCredentials("a first message that is not of the form n,,n=user,r=nonce")
        user = found["user"].replace("=2C", ",").replace("=3D", "=")
        is_token = _TOKEN_LOGIN in found["extensions"].lower()
        credential = None if is_token else self._credentials.get(user)
        if credential is None:
            raise InvalidCredentials(f"no {self._mechanism} credential of user {user!r}")
        authorization = (found["authorization"] or "").replace("=2C", ",").replace("=3D", "=")
        if authorization and authorization != user:
            raise AuthenticationFailed(OTHER_AUTHORIZATION_ID)
        if credential.iterations < ITERATIONS_MIN:
            raise InvalidCredentials(
                f"the stored credential of {user!r} has {credential.iterations} iterations, fewer than"
                f" {ITERATIONS_MIN}"
            )
        self.user = user
        self._credential = credential
        self._expected_nonce = found["nonce"] + self._nonce()
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._expected_nonce},s={salt},i={credential.iterations}"
        self._said = f"{found['bare']},{answer}"
        return answer.encode()

    def _final(self, credential: ScramCredential, text: str) -> bytes:
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            raise InvalidCredentials("a final message that is not of the form c=…,r=nonce,p=proof")
        if not hmac.compare_digest(found["nonce"].encode(), self._expected_nonce.encode()):
            raise InvalidCredentials("the nonce of the final message is not the one we gave")
        proved = f"{self._said},{found['without_proof']}".encode()
        proof = decoded(found["proof"])
        expected = keyed(self._mechanism, credential.stored_key, proved)
        if len(proof) != len(expected):
            raise InvalidCredentials(f"wrong password of user {self.user!r}")
        client_key = xor(proof, expected)
        stored_key = hashlib.new(HASHES[self._mechanism], client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise InvalidCredentials(f"wrong password of user {self.user!r}")
        self.is_complete = True
        signature = keyed(self._mechanism, credential.server_key, proved)
        return b"v=" + base64.b64encode(signature)
