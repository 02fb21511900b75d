"""Clients of listeners that ask who they are: nobody's requests are looked at before that is known.

A connection that is not in yet, and one whose login holds for a limited time only, is *guarded*: each of its
requests comes through here first. All others never do.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.broker.clients.connections import Connection, Connections
from ottla.broker.clients.request import Request
from ottla.broker.outputs import LimitFrames
from ottla.broker.runtime.log_limit import LogLimit
from ottla.broker.runtime.runtime import Runtime
from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.security.sasl.outcome import AuthenticationFailed
from ottla.security.sasl.scram import ScramCredential
from ottla.security.sasl.server_login import ServerLogin, Stage
from ottla.security.shown import shown
from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.wire.codec import decode
from ottla.wire.headers import decode_request_header
from ottla.wire.keys import ApiKey
from ottla.wire.versions import API_VERSIONS

log = logging.getLogger(__name__)

LOGIN_MS_MAX: Final = 30_000
"""How long a client may take to log in; Kafka leaves it until the connection is idle for ten minutes."""
_HANDSHAKE_KEY: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
_HANDSHAKE_VERSION_MAX: Final = 1
_AUTHENTICATE_VERSION_MAX: Final = 2


class Logins:
    """Lets clients in."""

    def __init__(
        self,
        runtime: Runtime,
        connections: Connections,
        credentials: Callable[[str], Mapping[str, ScramCredential]],
        make_nonce: Callable[[], str],
        *,
        tell_versions: Callable[[Request, ApiVersionsRequest], ApiVersionsResponse],
        refuse_version: Callable[[Request], None],
    ) -> None:
        self._runtime = runtime
        self._connections = connections
        self._listeners = runtime.config.listeners.sasl
        self._credentials = credentials
        self._make_nonce = make_nonce
        self._tell_versions = tell_versions
        self._refuse_version = refuse_version
        self._log_limit = LogLimit(lambda: runtime.clock.monotonic_ms() / 1000)

    def connected(self, connection: Connection) -> None:
        """A client came in; if its listener asks who it is, it must say so soon."""
        rules = self._listeners.get(connection.listener)
        if rules is None:
            return
        login = connection.login = ServerLogin(rules, self._credentials, self._make_nonce)
        self._connections.guard(connection, is_guarded=True)

        def hang_up() -> None:
            if not login.was_in:
                connection.close(f"no login within {LOGIN_MS_MAX} ms")

        self._runtime.timers.after(LOGIN_MS_MAX, hang_up)

    def lets_through(self, connection: Connection, frame: memoryview) -> bool:
        """Whether a request of a guarded connection may be served; otherwise it is dealt with."""
        login = connection.login
        assert login is not None, "only connections with a login are guarded"
        if login.stage in (Stage.COMPLETE, Stage.EXPIRED):
            if not login.has_expired(self._now_ms()) or frame[:2] == _HANDSHAKE_KEY:
                return True
            connection.close(f"the login of {login.principal} has expired")
            return False
        try:
            self._take(connection, login, frame)
        except MalformedRequest as malformed:
            self._fail(connection, login, f"not a Kafka request during the login: {malformed}")
        return False

    def handshake(self, request: Request, body: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
        """SaslHandshake of a client that is in: it may log in again where logins have a lifetime."""
        login = request.connection.login
        if login is not None and login.may_begin_again(self._now_ms()):
            self._handshake(request, login, body)
            return None
        if login is not None and login.stage is Stage.EXPIRED:
            request.hang_up(f"the login of {login.principal} has expired")
            return None
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

    # ---- the requests of a login

    def _take(self, connection: Connection, login: ServerLogin, frame: memoryview) -> None:
        if login.stage is Stage.TOKENS and login.has_changed_mechanism:
            why = "another SASL mechanism than before the re-authentication"
            self._fail(connection, login, why)
            return
        if login.stage is Stage.TOKENS and not login.has_headers:
            self._bare_token(connection, login, bytes(frame))
            return
        (api_key, version, correlation_id, client_id), offset = decode_request_header(frame)
        request = Request(connection, api_key, version, correlation_id, client_id, len(frame))
        if login.stage is Stage.TOKENS:
            self._token_request(request, login, frame, offset)
        elif api_key == ApiKey.API_VERSIONS:
            self._versions(request, login, frame, offset)
        elif api_key == ApiKey.SASL_HANDSHAKE and 0 <= version <= _HANDSHAKE_VERSION_MAX:
            body = decode(SaslHandshakeRequest, version, frame, offset)
            connection.accept(request)
            self._handshake(request, login, body)
        else:
            self._fail(connection, login, f"a request of type {_api_name(api_key)} before the login")

    def _versions(self, request: Request, login: ServerLogin, frame: memoryview, offset: int) -> None:
        connection = request.connection
        if login.stage is not Stage.VERSIONS_OR_HANDSHAKE:
            connection.close("ApiVersions for the second time before the login")
            return
        connection.accept(request)
        first, last = API_VERSIONS[ApiKey.API_VERSIONS][:2]
        if not first <= request.api_version <= last:
            self._refuse_version(request)
            return
        response = self._tell_versions(
            request, decode(ApiVersionsRequest, request.api_version, frame, offset)
        )
        if not response.error_code:
            login.versions_told()
        request.reply(response)

    def _handshake(self, request: Request, login: ServerLogin, body: SaslHandshakeRequest) -> None:
        mechanisms = login.listener.mechanisms
        if login.handshake(body.mechanism, request.api_version):
            request.reply(SaslHandshakeResponse(mechanisms=mechanisms))
            return
        if not login.is_again:  # Kafka gives no answer to a client that was in already.
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            request.reply(SaslHandshakeResponse(error_code=error, mechanisms=mechanisms))
        why = f"the SASL mechanism {body.mechanism!r} is not enabled, only {','.join(mechanisms)}"
        self._fail(request.connection, login, why)

    def _token_request(self, request: Request, login: ServerLogin, frame: memoryview, offset: int) -> None:
        connection, version = request.connection, request.api_version
        if request.api_key != ApiKey.SASL_AUTHENTICATE:
            name = _api_name(request.api_key)
            answer = _error_form(request.api_key, version, ErrorCode.ILLEGAL_SASL_STATE)
            self._fail(connection, login, f"a request of type {name} during the login", request, answer)
            return
        if not 0 <= version <= _AUTHENTICATE_VERSION_MAX:
            self._fail(connection, login, f"SaslAuthenticate of version {version}")
            return
        body = decode(SaslAuthenticateRequest, version, frame, offset)
        try:
            token = login.token(bytes(body.auth_bytes), self._now_ms())
        except AuthenticationFailed as failed:
            refusal = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(failed)
            )
            self._fail(connection, login, _reason(failed), request, refusal)
            return
        connection.accept(request)
        lifetime_ms = login.lifetime_ms if login.is_in else 0
        request.reply(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))
        self._let_in_if_done(connection, login)

    def _bare_token(self, connection: Connection, login: ServerLogin, frame: bytes) -> None:
        """The oldest form: a token and its size, without a request around it."""
        try:
            token = login.token(frame, self._now_ms())
        except AuthenticationFailed as failed:
            self._fail(connection, login, _reason(failed))
            return
        connection.write_bare([len(token).to_bytes(4, "big"), token])
        self._let_in_if_done(connection, login)

    # ---- how it ends

    def _let_in_if_done(self, connection: Connection, login: ServerLogin) -> None:
        if not login.is_in:
            return
        if not login.is_again:
            bytes_max = self._runtime.config.connections.socket_request_max_bytes
            self._runtime.outputs.append(LimitFrames(connection.id, bytes_max))
        self._connections.guard(connection, is_guarded=bool(login.lifetime_ms))

    def _fail(
        self,
        connection: Connection,
        login: ServerLogin,
        why: str,
        request: Request | None = None,
        answer: Any = None,
    ) -> None:
        """Answer and hang up, but not at once: whoever tries passwords waits each time."""
        login.stage = Stage.FAILED
        connection.is_doomed = True
        reason = f"authentication failed listener={connection.listener}: {shown(why)}"
        if request is not None:
            connection.accept(request)

        def end() -> None:
            if connection.is_closed:
                self._tell(connection, reason)
                return
            if request is None:
                connection.close(reason)
                return
            request.hang_up_reason = reason
            if answer is None:
                request.reply_nothing()
            else:
                request.reply(answer)

        delay_ms = self._runtime.config.connections.connection_failed_authentication_delay_ms
        self._runtime.timers.after(delay_ms, end)

    def _tell(self, connection: Connection, reason: str) -> None:
        """Whoever leaves before the answer is told of, too: the edge does so of those it hangs up on."""
        left_out = self._log_limit.take()
        if left_out is not None:
            log.warning("client=%s left reason=%s left_out=%d", connection.host, reason, left_out)

    def _now_ms(self) -> int:
        return self._runtime.clock.monotonic_ms()


def _reason(failed: AuthenticationFailed) -> str:
    """For our log: what the client is not told, if there is something."""
    return str(failed.__cause__ or failed)


def _api_name(api_key: int) -> str:
    return ApiKey(api_key).name if api_key in API_VERSIONS else str(api_key)


def _error_form(api_key: int, version: int, error: ErrorCode) -> Any:
    """The API's answer that says this; None for an API or a version that we do not know."""
    if api_key not in API_VERSIONS:
        return None
    first, last = API_VERSIONS[api_key][:2]
    if not first <= version <= last:
        return None
    response = message_classes(ApiKey(api_key))[1]
    return response(error_code=error) if "error_code" in response.__struct_fields__ else response()
