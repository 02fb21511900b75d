"""SCRAM users: their credentials described and altered. The password itself never leaves the client."""

from collections.abc import Iterable

from ottla.client.admin.asking import ask_any, ask_controller, raise_for
from ottla.client.engine.engine import Engine
from ottla.client.engine.tasks import Operation
from ottla.security.sasl.scram import HASHES, SALT_DIGITS, TYPES, salted_password
from ottla.security.secret import Secret
from ottla.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    UserName,
)

NUMBERS = {mechanism: number for number, mechanism in TYPES.items()}


def describe_users(
    engine: Engine, users: Iterable[str] | None = None, timeout_ms: int | None = None
) -> Operation[list[DescribeUserScramCredentialsResult]]:
    """The mechanisms of these users, or of all; one row per user."""
    names = None if users is None else [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=names)
    response = yield from ask_any(engine, request, DescribeUserScramCredentialsResponse, timeout_ms)
    raise_for(response.error_code, response.error_message)
    return response.results


def set_password(
    engine: Engine,
    user: str,
    password: Secret,
    mechanisms: Iterable[str],
    iterations: int,
    timeout_ms: int | None = None,
) -> Operation[list[AlterUserScramCredentialsResult]]:
    """Let a user log in with these mechanisms and this password."""
    salt = "".join(engine.random.choices(SALT_DIGITS, k=26)).encode()
    rows = [
        ScramCredentialUpsertion(
            name=user,
            mechanism=NUMBERS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted_password(mechanism, password, salt, iterations),
        )
        for mechanism in mechanisms
    ]
    return _alter(engine, AlterUserScramCredentialsRequest(upsertions=rows), timeout_ms)


def remove_credentials(
    engine: Engine, user: str, mechanisms: Iterable[str] = tuple(HASHES), timeout_ms: int | None = None
) -> Operation[list[AlterUserScramCredentialsResult]]:
    """Let a user log in with these mechanisms no more."""
    rows = [ScramCredentialDeletion(name=user, mechanism=NUMBERS[mechanism]) for mechanism in mechanisms]
    return _alter(engine, AlterUserScramCredentialsRequest(deletions=rows), timeout_ms)


def _alter(
    engine: Engine, request: AlterUserScramCredentialsRequest, timeout_ms: int | None
) -> Operation[list[AlterUserScramCredentialsResult]]:
    response = yield from ask_controller(
        engine,
        request,
        AlterUserScramCredentialsResponse,
        lambda answer: [row.error_code for row in answer.results],
        timeout_ms,
    )
    return response.results
