"""Delegation tokens: what a broker without them answers, each by its name.

The answers are those of Apache Kafka 3.9 on a PLAINTEXT listener without an authorizer.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.apis.describe_delegation_token import DescribeDelegationTokenResponse
from ottla.wire.apis.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.apis.renew_delegation_token import RenewDelegationTokenResponse
from ottla.wire.fields import Response

R = TypeVar("R", bound=Response)


def _always(response: type[R], error: ErrorCode, **fields: Any) -> Callable[[Node, Request, object], R]:
    """A handler that answers every request of its API alike."""
    return lambda node, request, body: response(error_code=error, **fields)


# Tokens are for authenticated listeners.
create_delegation_token = _always(
    CreateDelegationTokenResponse,
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    principal_type="User",
    principal_name="ANONYMOUS",
    token_requester_principal_type="User",
    token_requester_principal_name="ANONYMOUS",
    issue_timestamp_ms=-1,
    expiry_timestamp_ms=-1,
    max_timestamp_ms=-1,
)
renew_delegation_token = _always(
    RenewDelegationTokenResponse, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
)
expire_delegation_token = _always(
    ExpireDelegationTokenResponse, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
)
describe_delegation_token = _always(
    DescribeDelegationTokenResponse, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
)
