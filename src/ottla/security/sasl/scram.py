"""SCRAM (RFC 5802) as Kafka speaks it: what is stored of a password, and how either side proves it knows it.

Passwords are plain UTF-8: Kafka does not normalise them (no SASLprep), nor does it look at channel binding.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from ottla.security.secret import Secret

SHA_256: Final = "SCRAM-SHA-256"
SHA_512: Final = "SCRAM-SHA-512"
HASHES: Final = {SHA_256: "sha256", SHA_512: "sha512"}
TYPES: Final = {1: SHA_256, 2: SHA_512}
"""The numbers of AlterUserScramCredentials."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
SALT_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
"""A salt is the text of a random number, as Kafka's tools make it."""
_KEYS: Final = frozenset({"salt", "stored_key", "server_key", "iterations"})
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a user's password, by mechanism."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """``Hi`` of the RFC: the slow step, milliseconds long."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.text.encode(), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What is stored of a salted password."""
    client_key = keyed(mechanism, salted, b"Client Key")
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(HASHES[mechanism], client_key).digest(),
        server_key=keyed(mechanism, salted, b"Server Key"),
        iterations=iterations,
    )


def keyed(mechanism: str, key: bytes, content: bytes) -> bytes:
    """The mechanism's HMAC."""
    return hmac.digest(key, content, HASHES[mechanism])


def xor(one: bytes, other: bytes) -> bytes:
    """Bit by bit."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def credential_text(credential: ScramCredential) -> str:
    """As Kafka keeps it under ``/config/users``."""
    parts = {
        "salt": _encoded(credential.salt),
        "stored_key": _encoded(credential.stored_key),
        "server_key": _encoded(credential.server_key),
        "iterations": str(credential.iterations),
    }
    return ",".join(f"{key}={value}" for key, value in parts.items())


def parse_credential(text: str) -> ScramCredential:
    """Exactly the four keys; ``ValueError``, without the content, otherwise."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if parts.keys() != _KEYS or len(text.split(",")) != len(_KEYS):
        raise ValueError(f"a SCRAM credential has the keys {', '.join(sorted(_KEYS))}")
    if not parts["iterations"].isdecimal():
        raise ValueError("the iterations of a SCRAM credential are a number")
    return ScramCredential(
        salt=decoded(parts["salt"]),
        stored_key=decoded(parts["stored_key"]),
        server_key=decoded(parts["server_key"]),
        iterations=int(parts["iterations"]),
    )


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def decoded(text: str) -> bytes:
    """Strict base 64; ``ValueError`` otherwise."""
    if _BASE64.fullmatch(text) is None:
        raise ValueError("not base 64")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base 64") from None
