"""Why a principal may do something or not, and what would change it, from the rules of a cluster."""

from collections.abc import Iterable

from ottla.security.acls.kinds import Operation, PatternType, Permission, Resource, ResourceType, Rule
from ottla.security.acls.rules import AclRules, Question, Reason

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


def right_lines(rules: Iterable[Rule], question: Question) -> list[str]:
    """The verdict, the rule it rests on, and the command that turns it."""
    known = AclRules()
    for rule in rules:
        known.put(rule.resource, known.of(rule.resource) | {rule.entry})
    verdict = known.decide(question)
    resource = Resource(question.type, question.name)
    what = f"{question.principal} {{}} {question.operation.title} {resource.type.title} {resource.name}"
    if verdict.is_allowed and verdict.rule is not None:
        return [
            f"{what.format('may')}: a rule allows it",
            f"  {_words(verdict.rule)}",
            f"to forbid it: {_command('--add', resource, question.operation, question.principal, '--deny')}",
        ]
    lines = [f"{what.format('may not')}: {verdict.reason.value}"]
    if verdict.reason is Reason.DENIED and verdict.rule is not None:
        entry = verdict.rule.entry
        remove = _command("--remove", verdict.rule.resource, entry.operation, entry.principal, "--deny")
        host = "" if entry.host == "*" else f" --deny-host {entry.host}"
        lines += [f"  {_words(verdict.rule)}", f"to take the rule away: {remove}{host}"]
    else:
        allow = _command("--add", resource, question.operation, question.principal, "--allow")
        lines += [f"to allow it: {allow}"]
    return [
        *lines,
        "super.users and allow.everyone.if.no.acl.found of the brokers count as well; no client sees them",
    ]


def _words(rule: Rule) -> str:
    entry = rule.entry
    verb = "allows" if entry.permission is Permission.ALLOW else "denies"
    place = "any host" if entry.host == "*" else entry.host
    return f"{rule.resource} {verb} {entry.operation.title} to {entry.principal} from {place}"


def _command(verb: str, resource: Resource, operation: Operation, principal: str, kind: str) -> str:
    if resource.type is ResourceType.CLUSTER:
        what = "--cluster"
    else:
        what = f"{_FLAGS[resource.type]} {_quoted(resource.name)}"
    pattern = " --resource-pattern-type prefixed" if resource.pattern is PatternType.PREFIXED else ""
    whom = f"{kind}-principal {_quoted(principal)}"
    return f"ottla acls {verb} {whom} --operation {operation.title} {what}{pattern}"


def _quoted(text: str) -> str:
    """As a shell takes it."""
    is_plain = text and all(each.isalnum() or each in "._-:" for each in text)
    escaped = text.replace("'", "'\\''")
    return text if is_plain else f"'{escaped}'"
