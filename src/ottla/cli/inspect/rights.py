"""``ottla explain --principal``: whether somebody may do something, and why."""

from pathlib import Path

import typer

from ottla.cli.shared.connection import connected
from ottla.cli.shared.refusal import UsageRefused
from ottla.client.admin.acls import describe_acls
from ottla.insight.access.rights import NO_HOST, right_lines
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import CLUSTER_NAME, OPERATIONS, Operation, PatternType, ResourceType
from ottla.security.acls.rules import Question


def explain_right(
    bootstrap_server: str,
    command_config: Path | None,
    principal: str,
    host: str,
    operation: str,
    named: dict[str, str | bool],
) -> None:
    """Ask for the rules that may count, and tell what they decide."""
    question = _question(principal, host, operation, named)
    wanted = AclFilter(question.type, question.name, PatternType.MATCH)
    with connected(bootstrap_server, command_config) as client:
        rules = client.run(describe_acls, wanted)
    typer.echo("\n".join(right_lines(rules, question)))


def _question(principal: str, host: str, operation: str, named: dict[str, str | bool]) -> Question:
    given = [(kind, name) for kind, name in named.items() if name]
    if len(given) != 1:
        raise UsageRefused("with --principal, say one of --topic, --group, --transactional-id, --cluster")
    if not all(principal.partition(":")[::2]):
        raise UsageRefused(f"{principal!r} is no principal; write it as User:{principal}")
    kind = ResourceType[given[0][0].replace("-", "_").upper()]
    known: dict[str, Operation] = {each.title.lower(): each for each in OPERATIONS[kind]}
    found = known.get(operation.replace("_", "").replace("-", "").lower())
    if found is None:
        names = ", ".join(each.title for each in known.values())
        raise UsageRefused(f"--operation {operation!r}: on a {kind.title} there are {names}")
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else str(given[0][1])
    return Question(principal, host or NO_HOST, found, kind, name)
