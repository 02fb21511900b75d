"""ACLs, SASL, delegation tokens, SCRAM, quotas: what a broker without them answers, each by its name.

The answers are those of Apache Kafka 3.9 on a PLAINTEXT listener without an authorizer. Quotas and SCRAM
credentials are refused as not supported: Ottla would not enforce them.
"""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis import alter_client_quotas as quotas
from ottla.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.wire.apis.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.apis.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.apis.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ottla.wire.apis.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from ottla.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ottla.wire.apis.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ottla.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHORIZER_TO_DESCRIBE = "No Authorizer is configured on the broker"
NO_QUOTAS = "Ottla has no client quotas yet."
NO_SCRAM = "Ottla has no SCRAM credentials yet."


def describe_acls(node: "Node", request: Request, body: DescribeAclsRequest) -> DescribeAclsResponse:
    """Nothing is protected."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TO_DESCRIBE
    )


def create_acls(node: "Node", request: Request, body: CreateAclsRequest) -> CreateAclsResponse:
    """An ACL that protects nothing is not taken."""
    refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refusal for _ in body.creations])


def delete_acls(node: "Node", request: Request, body: DeleteAclsRequest) -> DeleteAclsResponse:
    """There is none to delete."""
    refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refusal for _ in body.filters])


def sasl_handshake(node: "Node", request: Request, body: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """The listener speaks no SASL."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    node: "Node", request: Request, body: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """The listener speaks no SASL."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def create_delegation_token(
    node: "Node", request: Request, body: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Tokens are for authenticated listeners."""
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type="User",
        principal_name="ANONYMOUS",
        token_requester_principal_type="User",
        token_requester_principal_name="ANONYMOUS",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def renew_delegation_token(
    node: "Node", request: Request, body: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Tokens are for authenticated listeners."""
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )


def expire_delegation_token(
    node: "Node", request: Request, body: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Tokens are for authenticated listeners."""
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )


def describe_delegation_token(
    node: "Node", request: Request, body: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Tokens are for authenticated listeners."""
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def describe_client_quotas(
    node: "Node", request: Request, body: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """An empty list would say that there is no limit; there may be, on Apache's brokers."""
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_QUOTAS, entries=None
    )


def alter_client_quotas(
    node: "Node", request: Request, body: quotas.AlterClientQuotasRequest
) -> quotas.AlterClientQuotasResponse:
    """A quota that nobody enforces is not taken."""
    rows = [
        quotas.ResponseEntryData(
            error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_QUOTAS, entity=entry.entity
        )
        for entry in body.entries
    ]
    return quotas.AlterClientQuotasResponse(entries=rows)


def describe_user_scram_credentials(
    node: "Node", request: Request, body: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Nobody can log in with them here."""
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_SCRAM
    )


def alter_user_scram_credentials(
    node: "Node", request: Request, body: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Nobody could log in with them here; only the controller would take them anyway."""
    is_controller = node.metadata.controller == node.broker_id
    error = ErrorCode.UNSUPPORTED_VERSION if is_controller else ErrorCode.NOT_CONTROLLER
    message = NO_SCRAM if is_controller else "This is not the correct controller for this cluster."
    users = dict.fromkeys([each.name for each in body.deletions] + [each.name for each in body.upsertions])
    rows = [
        AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message) for user in users
    ]
    return AlterUserScramCredentialsResponse(results=rows)
