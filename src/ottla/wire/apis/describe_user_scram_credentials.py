"""DescribeUserScramCredentials: which SCRAM mechanisms users have."""

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32


class UserName(Struct):
    name: str = ""


class DescribeUserScramCredentialsRequest(Request):
    users: list[UserName] | None = []


class CredentialInfo(Struct):
    mechanism: i8 = 0
    iterations: i32 = 0


class DescribeUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
