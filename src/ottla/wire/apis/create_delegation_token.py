"""CreateDelegationToken: a token to act for a principal."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, not_ignorable, since


class CreatableRenewers(Struct):
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(Request):
    owner_principal_type: Annotated[str | None, since(3), not_ignorable] = ""
    owner_principal_name: Annotated[str | None, since(3), not_ignorable] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: i64 = 0


class CreateDelegationTokenResponse(Response):
    error_code: i16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3)] = ""
    token_requester_principal_name: Annotated[str, since(3)] = ""
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0
    max_timestamp_ms: i64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: i32 = 0
