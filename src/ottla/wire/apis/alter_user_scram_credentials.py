"""AlterUserScramCredentials: SCRAM credentials are stored and removed."""

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32


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
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Struct):
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
