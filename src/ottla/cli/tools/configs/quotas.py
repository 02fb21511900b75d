"""Quotas of users, clients and addresses in ``ottla configs``, in Kafka's words."""

from collections.abc import Mapping
from typing import Final

import typer

from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.client.admin.quotas import EVERY, Every, alter_quotas, describe_quotas
from ottla.client.blocking.client import Client
from ottla.security.quotas.table import CLIENT_KEYS, CONNECTIONS
from ottla.security.quotas.values import java_double

KINDS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
"""What entity types are called in the protocol."""
_SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
Entities = Mapping[str, str | None]
"""Names by entity types; "" is the default, None stands for each one."""


def check_kinds(entities: Entities) -> None:
    """Users and clients go together, everything else stands alone."""
    if len(entities) > 1 and set(entities) != {"users", "clients"}:
        raise UsageRefused(f"{' and '.join(entities)} do not go together; only users and clients do")


def is_for(entities: Entities, names: list[str]) -> bool:
    """Whether these settings are quotas; of users they may be SCRAM credentials instead, all or none."""
    allowed = (CONNECTIONS,) if "ips" in entities else CLIENT_KEYS
    unknown = [name for name in names if name not in allowed]
    if not unknown:
        return True
    if list(entities) == ["users"] and len(unknown) == len(names):
        return False
    raise CommandRefused(
        f"{', '.join(unknown)}: no quota of {', '.join(entities)}; there are {', '.join(allowed)}"
    )


def alter(client: Client, entities: Entities, added: dict[str, str], deleted: list[str]) -> None:
    """Change quotas; what is to be removed must be there."""
    if None in entities.values():
        raise UsageRefused("--alter needs --entity-name or --entity-default")
    changes: dict[str, float | None] = {name: _number(name, text) for name, text in added.items()}
    wanted = _wanted(entities)
    there = {key for _, quotas in client.run(describe_quotas, wanted) for key in quotas} if deleted else set()
    if missing := [name for name in deleted if name not in there]:
        raise CommandRefused(f"Invalid config(s): {','.join(missing)}; they are not set")
    changes.update(dict.fromkeys(deleted))
    client.run(
        alter_quotas, {kind: name for kind, name in wanted.items() if not isinstance(name, Every)}, changes
    )
    kind, name = next(iter(entities.items()))
    if name:
        typer.echo(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        typer.echo(f"Completed updating default config for {kind} in the cluster.")


def describe(client: Client, entities: Entities) -> None:
    """A line for each entity that has quotas."""
    for entity, quotas in client.run(describe_quotas, _wanted(entities)):
        whom = ", ".join(
            f"the default {_SHOWN[kind]}" if entity[kind] is None else f"{_SHOWN[kind]} '{entity[kind]}'"
            for kind in _SHOWN
            if kind in entity
        )
        values = ", ".join(f"{key}={java_double(value)}" for key, value in quotas.items())
        typer.echo(f"Quota configs for {whom} are {values}")


def _wanted(entities: Entities) -> dict[str, str | Every | None]:
    return {KINDS[kind]: EVERY if name is None else name or None for kind, name in entities.items()}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageRefused(f"{name}={text} is not a number") from None
