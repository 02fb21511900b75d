"""ACLs, delegation tokens: what a broker without them answers, each by its name.

The answers are those of Apache Kafka 3.9 on a PLAINTEXT listener without an authorizer.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.apis.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.apis.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.apis.describe_acls import DescribeAclsResponse
from ottla.wire.apis.describe_delegation_token import DescribeDelegationTokenResponse
from ottla.wire.apis.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.apis.renew_delegation_token import RenewDelegationTokenResponse
from ottla.wire.fields import Response

R = TypeVar("R", bound=Response)

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHORIZER_TO_DESCRIBE = "No Authorizer is configured on the broker"


def _always(response: type[R], error: ErrorCode, **fields: Any) -> Callable[[Node, Request, object], R]:
    """A handler that answers every request of its API alike."""
    return lambda node, request, body: response(error_code=error, **fields)


describe_acls = _always(
    DescribeAclsResponse, ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TO_DESCRIBE
)
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


def create_acls(node: Node, request: Request, body: CreateAclsRequest) -> CreateAclsResponse:
    """An ACL that protects nothing is not taken."""
    refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refusal for _ in body.creations])


def delete_acls(node: Node, request: Request, body: DeleteAclsRequest) -> DeleteAclsResponse:
    """There is none to delete."""
    refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refusal for _ in body.filters])
