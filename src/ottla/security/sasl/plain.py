"""SASL/PLAIN: the password itself; the users stand in the broker's JAAS text."""

import hmac
from collections.abc import Mapping
from typing import Final

from ottla.security.sasl.outcome import AuthenticationFailed
from ottla.security.secret import Secret

NAME: Final = "PLAIN"
OTHER_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
TOKENS: Final = 3


class PlainServer:
    """One login."""

    __slots__ = ("_users", "is_complete", "user")

    def __init__(self, users: Mapping[str, Secret]) -> None:
        self._users = users
        self.user = ""
        self.is_complete = False

    def evaluate(self, token: bytes) -> bytes:
        """``[authorization id] NUL user NUL password``, nothing else."""
        parts = token.decode("utf-8", "replace").split("\0", TOKENS)
        if len(parts) != TOKENS:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        expected = self._users.get(user)
        # An unknown user takes as long as a wrong password.
        is_right = hmac.compare_digest((expected or Secret("\0")).text.encode(), password.encode())
        if expected is None or not is_right:
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise AuthenticationFailed(OTHER_AUTHORIZATION_ID)
        self.user = user
        self.is_complete = True
        return b""


class PlainClient:
    """One login."""

    __slots__ = ("_password", "_user", "name")

    def __init__(self, user: str, password: Secret) -> None:
        self.name = NAME
        self._user = user
        self._password = password

    def first(self) -> bytes:
        return f"\0{self._user}\0{self._password.text}".encode()

    def evaluate(self, token: bytes) -> bytes | None:
        """The broker has nothing to add."""
        return None
