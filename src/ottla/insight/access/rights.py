"""Why a principal may do something or not, and what would change it, from the rules of a cluster."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.security.acls.kinds import Operation, PatternType, Permission, Resource, ResourceType, Rule
from ottla.security.acls.rules import AclRules, Question, Reason

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


NO_HOST = "(any)"
"""A host that only rules for all hosts mean."""
UNSEEN = "super.users and allow.everyone.if.no.acl.found of the brokers count as well; no client sees them"


class Right(NamedTuple):
    """Whether somebody may do something, by which rule, and what would turn it."""

    is_allowed: bool
    sentence: str
    rule: str | None
    turn: str
    command: str


def why(rules: Iterable[Rule], question: Question) -> Right:
    """The verdict, the rule it rests on, and the command that turns it."""
    known = AclRules()
    for rule in rules:
        known.put(rule.resource, known.of(rule.resource) | {rule.entry})
    verdict = known.decide(question)
    resource = Resource(question.type, question.name)

    def said(verb: str) -> str:
        what = f"{question.operation.title} {resource.type.title} {resource.name}"
        return f"{question.principal} {verb} {what}"

    if verdict.is_allowed and verdict.rule is not None:
        forbid = _command("--add", resource, question.operation, question.principal, "--deny")
        sentence = f"{said('may')}: a rule allows it"
        return Right(True, sentence, _words(verdict.rule), "to forbid it", forbid)
    sentence = f"{said('may not')}: {verdict.reason.value}"
    if verdict.reason is Reason.DENIED and verdict.rule is not None:
        entry = verdict.rule.entry
        remove = _command("--remove", verdict.rule.resource, entry.operation, entry.principal, "--deny")
        host = "" if entry.host == "*" else f" --deny-host {entry.host}"
        return Right(False, sentence, _words(verdict.rule), "to take the rule away", remove + host)
    allow = _command("--add", resource, question.operation, question.principal, "--allow")
    return Right(False, sentence, None, "to allow it", allow)


def right_lines(rules: Iterable[Rule], question: Question) -> list[str]:
    """The same for a terminal."""
    right = why(rules, question)
    shown = [] if right.rule is None else [f"  {right.rule}"]
    unseen = [] if right.is_allowed else [UNSEEN]
    return [right.sentence, *shown, f"{right.turn}: {right.command}", *unseen]


def _words(rule: Rule) -> str:
    entry = rule.entry
    verb = "allows" if entry.permission is Permission.ALLOW else "denies"
    place = "any host" if entry.host == "*" else entry.host
    return f"{rule.resource} {verb} {entry.operation.title} to {entry.principal} from {place}"


def _command(verb: str, resource: Resource, operation: Operation, principal: str, kind: str) -> str:
    if resource.type is ResourceType.CLUSTER:
        what = "--cluster"
    else:
        what = f"{_FLAGS[resource.type]} {shell_quoted(resource.name)}"
    pattern = " --resource-pattern-type prefixed" if resource.pattern is PatternType.PREFIXED else ""
    whom = f"{kind}-principal {shell_quoted(principal)}"
    return f"ottla acls {verb} {whom} --operation {operation.title} {what}{pattern}"


def shell_quoted(text: str) -> str:
    """As a shell takes it."""
    is_plain = text and all(each.isalnum() or each in "._-:" for each in text)
    escaped = text.replace("'", "'\\''")
    return text if is_plain else f"'{escaped}'"
