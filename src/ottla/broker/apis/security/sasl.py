"""SaslHandshake and SaslAuthenticate of clients that are in already, or that nobody asks who they are."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

ALREADY_IN = "SaslAuthenticate request received after successful authentication"


def handshake(node: Node, request: Request, body: SaslHandshakeRequest) -> SaslHandshakeResponse | None:
    """Logging in again is for connections whose login has a lifetime."""
    return node.logins.handshake(request, body)


def authenticate(node: Node, request: Request, body: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """It belongs behind a handshake, where ``Logins`` takes it."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=ALREADY_IN)
