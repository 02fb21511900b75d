"""Describe- and AlterUserScramCredentials: users and their salted passwords, under ``/config/users``.

The controller alone changes them; every broker hears of it by a note and lets them in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.broker.settings.resources import InvalidResource
from ottla.broker.settings.users import Users
from ottla.broker.settings.writer import write_overrides
from ottla.model.errors import ErrorCode
from ottla.security.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    TYPES,
    credential_of,
    credential_text,
)
from ottla.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.znodes import paths
from ottla.znodes.codec_config import ConfigNode, decode_config
from ottla.zookeeper.ops import Data, Delete, GetData

NO_USER: Final = "Username must not be empty"
NO_MECHANISM: Final = "Unknown SCRAM mechanism"
TOO_FEW: Final = "Too few iterations"
TOO_MANY: Final = "Too many iterations"
TWICE: Final = "A user credential cannot be altered twice in the same request"
NOT_THERE: Final = "Attempt to delete a user credential that does not exist"
OTHER_CONTROLLER: Final = "This is not the correct controller for this cluster."
Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion
Refusal: TypeAlias = tuple[ErrorCode, str]


def alter(node: Node, request: Request, body: AlterUserScramCredentialsRequest) -> None:
    """Each user's changes are made as one; a mistake among them spoils that user's alone."""
    changes: dict[str, list[Change]] = {}
    everything: list[Change] = [*body.deletions, *body.upsertions]
    for change in everything:
        changes.setdefault(change.name, []).append(change)
    if not node.controller.is_active:
        refusal = (ErrorCode.NOT_CONTROLLER, OTHER_CONTROLLER)
        rows = [_row(user, refusal) for user in changes]
        request.reply(AlterUserScramCredentialsResponse(results=rows))
        return

    def steps() -> Steps[AlterUserScramCredentialsResponse]:
        rows = []
        for user, wanted in changes.items():
            refusal = why_not(user, wanted)
            if refusal is None:
                refusal = yield from _write(user, wanted)
            rows.append(_row(user, refusal))
        return AlterUserScramCredentialsResponse(results=rows)

    node.tasks.spawn(steps(), request, request.reply)


def why_not(user: str, changes: Sequence[Change]) -> Refusal | None:
    """What is wrong with the changes of one user, before anything is read."""
    for change in changes:
        if not user:
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, NO_USER
        if change.mechanism not in TYPES:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, NO_MECHANISM
        if isinstance(change, ScramCredentialUpsertion):
            if change.iterations > ITERATIONS_MAX:
                return ErrorCode.UNACCEPTABLE_CREDENTIAL, TOO_MANY
            if change.iterations < ITERATIONS_MIN:
                return ErrorCode.UNACCEPTABLE_CREDENTIAL, TOO_FEW
    counts = Counter(change.mechanism for change in changes)
    return (ErrorCode.DUPLICATE_RESOURCE, TWICE) if max(counts.values()) > 1 else None


def _write(user: str, changes: Sequence[Change]) -> Steps[Refusal | None]:
    def changed(before: Mapping[str, str]) -> dict[str, str]:
        after = dict(before)
        for change in changes:
            mechanism = TYPES[change.mechanism]
            if isinstance(change, ScramCredentialDeletion):
                if mechanism not in after:
                    raise InvalidResource(ErrorCode.RESOURCE_NOT_FOUND, NOT_THERE)
                del after[mechanism]
            else:
                credential = credential_of(
                    mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
                )
                after[mechanism] = credential_text(credential)
        return after

    entity = f"users/{paths.sanitized(user)}"
    invalid = yield from write_overrides(entity, changed, validate_only=False)
    if invalid is not None:
        return invalid.code, invalid.message or ""
    if any(isinstance(change, ScramCredentialDeletion) for change in changes):
        yield from _remove_if_empty(f"{paths.CONFIG}/{entity}")
    return None


def _remove_if_empty(path: str) -> Steps[None]:
    """A user of whom nothing is left is not kept, as in Kafka; one with quotas of clients below is."""
    found = yield from persistently(GetData(path))
    if isinstance(found, Data) and decode_config(found.data) == ConfigNode({}):
        yield from persistently(Delete(path, found.stat.version))


def _row(user: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    if refusal is None:
        return AlterUserScramCredentialsResult(user=user)
    return AlterUserScramCredentialsResult(user=user, error_code=refusal[0], error_message=refusal[1])


def describe(node: Node, request: Request, body: DescribeUserScramCredentialsRequest) -> None:
    """Answered from ZooKeeper, so that a change is seen at once, whoever made it."""
    users = node.configs.users

    def steps() -> Steps[DescribeUserScramCredentialsResponse]:
        yield from users.load()
        asked = [each.name for each in body.users or ()]
        counts = Counter(asked or users.names)
        rows = [_described(users, user, count) for user, count in counts.items()]
        return DescribeUserScramCredentialsResponse(results=rows)

    node.tasks.spawn(steps(), request, request.reply)


def _described(users: Users, user: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        words = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=words
        )
    infos = [
        CredentialInfo(mechanism=number, iterations=users.of(mechanism)[user].iterations)
        for number, mechanism in TYPES.items()
        if user in users.of(mechanism)
    ]
    if not infos:
        words = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=words
        )
    return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
