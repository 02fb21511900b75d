"""Who may what, and why: listeners, users, access rules, quotas, and what the rules say of a principal."""

from collections.abc import Awaitable, Mapping
from typing import TypeVar

import msgspec

from ottla.client.admin.acls import describe_acls
from ottla.client.admin.configs import ResourceType as Configured
from ottla.client.admin.configs import describe_configs
from ottla.client.admin.quotas import EVERY, Every, describe_quotas
from ottla.client.admin.users import describe_users
from ottla.client.aio.client import Client
from ottla.client.errors import BrokerError, UnsupportedByBroker
from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.world import World
from ottla.insight.access.listeners import Listener, listeners
from ottla.insight.access.rights import NO_HOST, UNSEEN, shell_quoted, why
from ottla.insight.wording import counted, joined
from ottla.model.errors import ErrorCode
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import CLUSTER_NAME, OPERATIONS, Permission, ResourceType, Rule
from ottla.security.acls.rules import Question
from ottla.security.quotas.values import java_double
from ottla.security.sasl.scram import TYPES
from ottla.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsResult

T = TypeVar("T")
ROWS_SHOWN = 100
ASK_MS_MAX = 6_000
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.CLUSTER,
}
QUOTA_KINDS: tuple[tuple[str, ...], ...] = (("user",), ("user", "client-id"), ("client-id",), ("ip",))


class Asked(msgspec.Struct, frozen=True):
    """What may this principal do to that? ``q`` are words that rules must have."""

    principal: str = ""
    kind: str = "topic"
    name: str = ""
    host: str = ""
    q: str = ""


class ListenerRow(msgspec.Struct, frozen=True):
    """One listener, and the brokers that have it."""

    name: str
    protocol: str
    asks: str
    is_open: bool
    is_readable: bool
    brokers: str


class RightRow(msgspec.Struct, frozen=True):
    """One operation: whether it is allowed, and by which rule."""

    operation: str
    is_allowed: bool
    sentence: str
    rule: str | None
    turn: str
    command: str


class UserRow(msgspec.Struct, frozen=True):
    """One user who logs in with SCRAM."""

    name: str
    mechanisms: str


class RuleRow(msgspec.Struct, frozen=True):
    """One access rule."""

    principal: str
    permission: str
    operation: str
    kind: str
    pattern: str
    name: str
    host: str
    may_be_asked: bool


class QuotaRow(msgspec.Struct, frozen=True):
    """What one user, client or address may take."""

    whom: str
    limits: str


class SecurityPage(msgspec.Struct, frozen=True):
    """All of it; a trouble says why a part could not be read."""

    frame: Frame
    asked: Asked
    sentence: str
    mood: str
    has_authorizer: bool
    listeners: list[ListenerRow]
    problem: str | None
    rights: list[RightRow]
    unseen: str
    users: list[UserRow]
    users_trouble: str | None
    rules: list[RuleRow]
    rules_more: int
    rules_trouble: str | None
    quotas: list[QuotaRow]
    quotas_trouble: str | None


async def security_page(world: World, client: Client, asked: Asked) -> SecurityPage:
    """Asks each live broker for its settings, and any broker for the rest."""
    rules, rules_trouble, is_unprotected = await _rules(client)
    users, users_trouble = await _tried(client.run(describe_users, timeout_ms=ASK_MS_MAX))
    quotas, quotas_trouble = await _quotas(client)
    world.requests += 2 + len(QUOTA_KINDS)
    doors = _doors(await _settings(world, client))
    problem = _problem(asked)
    is_answered = bool(asked.principal) and problem is None and rules_trouble is None
    shown = [row for row in map(_rule_row, sorted(rules)) if _has_words(row, asked.q)]
    sentence, mood = _verdict(doors, len(rules), rules_trouble, has_authorizer=not is_unprotected)
    return SecurityPage(
        frame=frame_of(world, "Security", _command(asked) if is_answered else "ottla acls --list"),
        asked=asked,
        sentence=sentence,
        mood=mood,
        has_authorizer=not is_unprotected,
        listeners=doors,
        problem=problem,
        rights=_rights(rules, asked) if is_answered and not is_unprotected else [],
        unseen=UNSEEN,
        users=sorted((_user_row(row) for row in users or () if not row.error_code), key=lambda row: row.name),
        users_trouble=users_trouble,
        rules=shown[:ROWS_SHOWN],
        rules_more=max(0, len(shown) - ROWS_SHOWN),
        rules_trouble=rules_trouble,
        quotas=quotas,
        quotas_trouble=quotas_trouble,
    )


async def _settings(world: World, client: Client) -> dict[str, dict[str, str]]:
    """Of each live broker."""
    assert world.picture is not None, "pages are made after the first look"
    brokers = [(Configured.BROKER, str(number)) for number in sorted(world.picture.live)]
    world.requests += len(brokers)
    found = await client.run(describe_configs, brokers, timeout_ms=ASK_MS_MAX)
    return {
        row.resource_name: {one.name: one.value or "" for one in row.configs}
        for row in found
        if not row.error_code
    }


async def _tried(asking: Awaitable[T]) -> tuple[T | None, str | None]:
    """What a broker answers, or why it does not want to; that none answers is left to the caller."""
    try:
        return await asking, None
    except (BrokerError, UnsupportedByBroker) as refused:
        return None, str(refused)


async def _rules(client: Client) -> tuple[list[Rule], str | None, bool]:
    """All rules, why they are not told, and whether there is no authorizer at all."""
    try:
        return await client.run(describe_acls, AclFilter(), ASK_MS_MAX), None, False
    except BrokerError as refused:
        is_unprotected = refused.code is ErrorCode.SECURITY_DISABLED
        return [], None if is_unprotected else str(refused), is_unprotected


async def _quotas(client: Client) -> tuple[list[QuotaRow], str | None]:
    rows = []
    for kinds in QUOTA_KINDS:
        wanted: dict[str, str | Every | None] = dict.fromkeys(kinds, EVERY)
        found, trouble = await _tried(client.run(describe_quotas, wanted, ASK_MS_MAX))
        if trouble is not None:
            return [], trouble
        rows += [QuotaRow(_whom(entity), _limits(values)) for entity, values in found or ()]
    return rows, None


def _user_row(row: DescribeUserScramCredentialsResult) -> UserRow:
    logins = (each for each in row.credential_infos if each.mechanism in TYPES)
    return UserRow(
        row.user, ", ".join(f"{TYPES[each.mechanism]} ({each.iterations} iterations)" for each in logins)
    )


def _whom(entity: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"every other {kind}" if name is None else f"{kind} {name}"
        for kind, name in sorted(entity.items(), reverse=True)
    )


def _limits(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key}={java_double(value)}" for key, value in sorted(values.items()))


def _doors(settings: Mapping[str, Mapping[str, str]]) -> list[ListenerRow]:
    """Listeners of all brokers, those that are alike in one row, the open ones first."""
    held: dict[Listener, list[int]] = {}
    for broker, values in settings.items():
        for listener in listeners(values):
            held.setdefault(listener, []).append(int(broker))
    rows = [ListenerRow(*listener, joined(sorted(by))) for listener, by in held.items()]
    return sorted(rows, key=lambda row: (not row.is_open, not row.is_readable, row.name))


def _verdict(
    doors: list[ListenerRow], count: int, trouble: str | None, *, has_authorizer: bool
) -> tuple[str, str]:
    opened = sorted({row.name for row in doors if row.is_open})
    anybody = (
        f"Nobody has to say who they are at {joined(opened)}." if opened else "Every listener asks who comes."
    )
    if not has_authorizer:
        return f"Everybody may do everything: no broker has an authorizer. {anybody}", "bad"
    if trouble is not None:
        return f"The rules are not told to this console ({trouble}). {anybody}", "warn"
    return f"{counted(count, 'rule')} say who may what. {anybody}".replace("1 rule say ", "1 rule says "), (
        "warn" if opened else "good"
    )


def _problem(asked: Asked) -> str | None:
    if not asked.principal:
        return None
    if not all(asked.principal.partition(":")[::2]):
        return f"{asked.principal} is no principal; write it as User:{asked.principal}."
    if asked.kind not in KINDS:
        return f"{asked.kind} is nothing that rules protect; there are {', '.join(KINDS)}."
    if not asked.name and asked.kind != "cluster":
        return f"Name the {asked.kind}."
    return None


def _rights(rules: list[Rule], asked: Asked) -> list[RightRow]:
    kind = KINDS[asked.kind]
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else asked.name
    rows = []
    for operation in OPERATIONS[kind]:
        right = why(rules, Question(asked.principal, asked.host or NO_HOST, operation, kind, name))
        rows.append(RightRow(operation.title, *right))
    return rows


def _command(asked: Asked) -> str:
    what = "--cluster" if asked.kind == "cluster" else f"--{asked.kind} {shell_quoted(asked.name)}"
    host = f" --host {shell_quoted(asked.host)}" if asked.host else ""
    first = OPERATIONS[KINDS[asked.kind]][0].title.lower()
    return f"ottla explain --principal {shell_quoted(asked.principal)} {what} --operation {first}{host}"


def _rule_row(rule: Rule) -> RuleRow:
    resource, entry = rule
    kind = resource.type.name.lower().replace("_", "-")
    return RuleRow(
        entry.principal,
        "allows" if entry.permission is Permission.ALLOW else "denies",
        entry.operation.title,
        kind,
        resource.pattern.name.lower(),
        resource.name,
        entry.host,
        kind in KINDS,
    )


def _has_words(row: RuleRow, words: str) -> bool:
    text = f"{row.principal} {row.permission} {row.operation} {row.kind} {row.name} {row.host}".lower()
    return all(word in text for word in words.lower().split())
