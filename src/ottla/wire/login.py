"""The client's side of a login: which requests to send, until the broker lets us in."""

from collections.abc import Callable
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.sasl.outcome import InvalidCredentials
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.fields import Request

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
"""What every broker since Kafka 2.2 speaks, without asking it first."""
LIFETIME_SHARE: Final = 0.9
"""We log in again when so much of the login's lifetime has passed; Java's clients take 85 to 95 %."""


class LoginRefused(Exception):
    """The broker does not let us in, or is not who it should be; the text says why."""


class ClientLogin:
    """One login over a connection; make a new one for each."""

    __slots__ = ("_mechanism", "_user", "lifetime_ms")

    def __init__(self, login: SaslLogin, make_nonce: Callable[[], str]) -> None:
        self._user = login.user
        self._mechanism = login.begin(make_nonce)
        self.lifetime_ms = 0
        """How long the login holds; 0 for ever."""

    def first(self) -> Request:
        """The request that begins it."""
        return SaslHandshakeRequest(mechanism=self._mechanism.name)

    def answered(self, response: Any) -> Request | None:
        """The next request; None when we are in. Raises ``LoginRefused``."""
        if isinstance(response, SaslHandshakeResponse):
            if response.error_code:
                offered = ", ".join(response.mechanisms) or "nothing on this listener"
                raise LoginRefused(
                    f"the broker does not take {self._mechanism.name} (it takes {offered}):"
                    " see sasl.mechanism"
                )
            return SaslAuthenticateRequest(auth_bytes=self._mechanism.first())
        assert isinstance(response, SaslAuthenticateResponse), "there are two kinds of answers"
        if response.error_code:
            code = ErrorCode(response.error_code).name
            raise LoginRefused(f"user {self._user!r}: {response.error_message or code}")
        try:
            token = self._mechanism.evaluate(bytes(response.auth_bytes))
        except InvalidCredentials as invalid:
            raise LoginRefused(f"user {self._user!r}: {invalid}") from None
        if token is None:
            self.lifetime_ms = response.session_lifetime_ms
            return None
        return SaslAuthenticateRequest(auth_bytes=token)

    @property
    def again_after_ms(self) -> int | None:
        """When to log in again; None: never."""
        return round(self.lifetime_ms * LIFETIME_SHARE) if self.lifetime_ms > 0 else None


def version_of(request: Request) -> int:
    """In which version a request of the login is sent."""
    return HANDSHAKE_VERSION if isinstance(request, SaslHandshakeRequest) else AUTHENTICATE_VERSION
