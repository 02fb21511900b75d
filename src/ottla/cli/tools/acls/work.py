"""What ``ottla acls`` does, in kafka-acls' words."""

from collections.abc import Iterable
from pathlib import Path

import typer

from ottla.cli.shared.connection import connected
from ottla.cli.tools.acls.wanted import Wanted
from ottla.client.admin.acls import create_acls, delete_acls, describe_acls
from ottla.client.blocking.client import Client
from ottla.security.acls.filters import AclFilter
from ottla.security.acls.kinds import Entry, Resource, Rule


def add(bootstrap_server: str, command_config: Path | None, wanted: Wanted) -> None:
    """Add the rules."""
    rules = wanted.rules()
    with connected(bootstrap_server, command_config) as client:
        for resource, entries in rules.items():
            _print(f"Adding ACLs for resource `{_shown(resource)}`: ", entries)
            client.run(create_acls, [Rule(resource, entry) for entry in entries])


def remove(bootstrap_server: str, command_config: Path | None, wanted: Wanted, *, is_sure: bool) -> None:
    """Remove the rules, once it is sure that they shall go."""
    filters = wanted.removed()
    with connected(bootstrap_server, command_config) as client:
        if not is_sure:
            found = dict.fromkeys(rule for each in filters for rule in client.run(describe_acls, each))
            for resource, entries in _by_resource(found).items():
                _print(f"To remove from resource `{_shown(resource)}`: ", entries)
            if not typer.confirm(f"Are you sure you want to remove {len(found)} ACLs?"):
                return
        client.run(delete_acls, filters)


def list_rules(
    bootstrap_server: str, command_config: Path | None, wanted: Wanted, principals: list[str]
) -> None:
    """List what is there."""
    with connected(bootstrap_server, command_config) as client:
        _list(client, wanted, principals)


def _list(client: Client, wanted: Wanted, principals: list[str]) -> None:
    rules = dict.fromkeys(
        rule for each in wanted.filters() for rule in client.run(describe_acls, AclFilter(*each))
    )
    if not principals:
        _print_all(rules)
    for principal in principals:
        typer.echo(f"ACLs for principal `{principal}`")
        _print_all(rule for rule in rules if rule.entry.principal == principal)


def _print_all(rules: Iterable[Rule]) -> None:
    for resource, entries in _by_resource(rules).items():
        _print(f"Current ACLs for resource `{_shown(resource)}`: ", entries)


def _by_resource(rules: Iterable[Rule]) -> dict[Resource, list[Entry]]:
    found: dict[Resource, list[Entry]] = {}
    for resource, entry in rules:
        found.setdefault(resource, []).append(entry)
    return found


def _print(head: str, entries: Iterable[Entry]) -> None:
    rows = "\n".join(
        f"\t(principal={entry.principal}, host={entry.host}, operation={entry.operation.name},"
        f" permissionType={entry.permission.name})"
        for entry in entries
    )
    typer.echo(f"{head}\n {rows} \n")


def _shown(resource: Resource) -> str:
    kind, name, pattern = resource
    return f"ResourcePattern(resourceType={kind.name}, name={name}, patternType={pattern.name})"
