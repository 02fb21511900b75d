"""AlterUserScramCredentials: SCRAM credentials are stored and removed."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i8, i16, i32
from ottla.wire.keys import ApiKey


class ScramCredentialDeletion(Struct):
    name: str = ""
    mechanism: i8 = 0


class ScramCredentialUpsertion(Struct):
    name: str = ""
    mechanism: i8 = 0
    iterations: i32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS)

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS)

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
