"""How a login fails, and what the two sides of a mechanism have in common."""

from typing import Protocol


class AuthenticationFailed(Exception):
    """The client is not let in; the text is what Kafka tells it."""


class InvalidCredentials(Exception):
    """The client is not let in, and is not told why; our log is."""


class ServerMechanism(Protocol):
    """One login on the broker's side."""

    user: str
    """Who it is, once ``is_complete``."""
    is_complete: bool

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a token; raises ``AuthenticationFailed`` or ``InvalidCredentials``."""


class ClientMechanism(Protocol):
    """One login on the client's side."""

    name: str

    def first(self) -> bytes:
        """The first token to send."""

    def evaluate(self, token: bytes) -> bytes | None:
        """What to send after the broker's token; None when the login is done. Raises ``InvalidCredentials``
        when the broker does not prove that it knows the user."""
