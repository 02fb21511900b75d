"""One connection's way in, on the broker's side: what may come when, as Kafka's brokers have it.

ApiVersions may come once, then SaslHandshake names the mechanism, then its tokens come, in requests of their
own (SaslHandshake 1) or bare (0). A connection whose login has a lifetime may log in again (KIP-368), as the
same user and with the same mechanism.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.sasl.outcome import AuthenticationFailed, InvalidCredentials, ServerMechanism
from ottla.security.sasl.plain import NAME as PLAIN
from ottla.security.sasl.plain import PlainServer
from ottla.security.sasl.scram import ScramCredential
from ottla.security.sasl.scram_server import ScramServer
from ottla.security.secret import Secret

REAUTHENTICATION_MS_MIN: Final = 1_000
"""A client that wants to log in again sooner than this is refused."""


class Stage(Enum):
    """How far a login has come."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    COMPLETE = auto()
    EXPIRED = auto()
    """It was complete; only a new handshake is taken."""
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class ListenerSasl:
    """How clients log in on one listener."""

    mechanisms: tuple[str, ...] = ()
    plain_users: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    """By mechanism: how long a login holds; 0 for ever."""


Credentials = Callable[[str], Mapping[str, ScramCredential]]
"""By mechanism: the SCRAM credentials of all users."""


class ServerLogin:
    """The state of one connection's login."""

    __slots__ = (
        "_credentials",
        "_expires_ms",
        "_last_start_ms",
        "_make_nonce",
        "_server",
        "has_headers",
        "is_again",
        "lifetime_ms",
        "listener",
        "mechanism",
        "principal",
        "stage",
    )

    def __init__(
        self, listener: ListenerSasl, credentials: Credentials, make_nonce: Callable[[], str]
    ) -> None:
        self.listener = listener
        self.stage = Stage.VERSIONS_OR_HANDSHAKE
        self.has_headers = False
        """Tokens come in SaslAuthenticate requests."""
        self.is_again = False
        """The connection was in before, and logs in again."""
        self.principal = ANONYMOUS
        self.mechanism = ""
        self.lifetime_ms = 0
        """How long the login holds; 0 for ever."""
        self._server: ServerMechanism | None = None
        self._credentials = credentials
        self._make_nonce = make_nonce
        self._last_start_ms: int | None = None
        self._expires_ms = 0

    @property
    def is_in(self) -> bool:
        return self.stage is Stage.COMPLETE

    @property
    def was_in(self) -> bool:
        """Whether it ever succeeded."""
        return self.is_again or self.stage in (Stage.COMPLETE, Stage.EXPIRED)

    def versions_told(self) -> None:
        """ApiVersions was answered well: it may not come again."""
        self.stage = Stage.HANDSHAKE

    def handshake(self, mechanism: str, version: int) -> bool:
        """The client named its mechanism; whether it is one of the listener's."""
        if version >= 1:
            self.has_headers = True
        if mechanism not in self.listener.mechanisms:
            self.stage = Stage.FAILED
            return False
        self.stage = Stage.TOKENS
        if self.is_again and mechanism != self.mechanism:
            self._server = None
        else:
            self.mechanism = mechanism
            self._server = self._new_server(mechanism)
        return True

    def _new_server(self, mechanism: str) -> ServerMechanism:
        if mechanism == PLAIN:
            return PlainServer(self.listener.plain_users)
        return ScramServer(mechanism, self._credentials(mechanism), self._make_nonce)

    def token(self, token: bytes, now_ms: int) -> bytes:
        """The answer to a token; ``AuthenticationFailed`` holds the text for the client. Afterwards ``is_in``
        says whether that was all."""
        server = self._server
        assert server is not None, "another mechanism than before is refused before its token is read"
        try:
            answer = server.evaluate(token)
            if server.is_complete:
                self._complete(Principal("User", server.user), now_ms)
        except AuthenticationFailed:
            self.stage = Stage.FAILED
            raise
        except InvalidCredentials as invalid:
            self.stage = Stage.FAILED
            during = "re-authentication" if self.is_again else "authentication"
            raise AuthenticationFailed(
                f"Authentication failed during {during} due to invalid credentials with SASL mechanism"
                f" {self.mechanism}"
            ) from invalid
        return answer

    @property
    def has_changed_mechanism(self) -> bool:
        """The client logs in again with another mechanism than before: its next token ends the connection."""
        return self.stage is Stage.TOKENS and self._server is None

    def _complete(self, principal: Principal, now_ms: int) -> None:
        if self.is_again and principal != self.principal:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from {self.principal.kind}."
                f"{self.principal.name}: {principal.kind}.{principal.name}"
            )
        self.principal = principal
        self.lifetime_ms = max(0, self.listener.max_reauth_ms.get(self.mechanism, 0))
        self._expires_ms = now_ms + self.lifetime_ms
        self._server = None
        self.stage = Stage.COMPLETE

    def has_expired(self, now_ms: int) -> bool:
        """Whether the login no longer holds; then only a handshake is taken."""
        if self.stage is Stage.COMPLETE and self.lifetime_ms and now_ms >= self._expires_ms:
            self.stage = Stage.EXPIRED
        return self.stage is Stage.EXPIRED

    def may_begin_again(self, now_ms: int) -> bool:
        """Begin a new login, if the present one has a lifetime and the last attempt is not too young."""
        if self.stage not in (Stage.COMPLETE, Stage.EXPIRED) or not self.lifetime_ms:
            return False
        last_ms = self._last_start_ms
        if last_ms is not None and now_ms - last_ms < REAUTHENTICATION_MS_MIN:
            return False
        self._last_start_ms = now_ms
        self.is_again = True
        self.stage = Stage.HANDSHAKE
        return True
