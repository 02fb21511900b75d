"""DescribeDelegationToken: the tokens of some owners."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, since


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(Request):
    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Struct):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3)] = ""
    token_requester_principal_name: Annotated[str, since(3)] = ""
    issue_timestamp: i64 = 0
    expiry_timestamp: i64 = 0
    max_timestamp: i64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


class DescribeDelegationTokenResponse(Response):
    error_code: i16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: i32 = 0
