"""DescribeUserScramCredentials: which SCRAM mechanisms users have."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i8, i16, i32
from ottla.wire.keys import ApiKey


class UserName(Struct):
    name: str = ""


class DescribeUserScramCredentialsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)

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
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
