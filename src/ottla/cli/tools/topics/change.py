"""``ottla topics --create``, ``--alter``, ``--delete``."""

from typing import Any

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.options import key_values, pattern
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.client.admin.topics import (
    a_topic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
)
from ottla.client.blocking.client import Client
from ottla.model.errors import ErrorCode

COLLIDING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could"
    " collide. To avoid issues it is best to use either, but not both."
)


def create(
    client: Client,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    config: list[str],
    if_not_exists: bool,
) -> None:
    """Create one topic."""
    if partitions is not None and partitions < 1:
        raise UsageRefused("--partitions must be greater than 0")
    if replication_factor is not None and not 1 <= replication_factor <= 32_767:
        raise UsageRefused("--replication-factor must be between 1 and 32767")
    assignment = parse_assignment(replica_assignment) if replica_assignment else []
    wanted = a_topic(
        name,
        partitions=partitions or -1,
        replication_factor=replication_factor or -1,
        assignments=dict(enumerate(assignment)),
        configs=key_values("--config", config),
    )
    if "." in name or "_" in name:
        typer.echo(COLLIDING)
    (row,) = client.run(create_topics, [wanted])
    if row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
        return
    _check(row)
    typer.echo(f"Created topic {name}.")


def alter(
    client: Client, expression: str, partitions: int | None, replica_assignment: str | None, if_exists: bool
) -> None:
    """Let topics grow."""
    if partitions is None:
        raise UsageRefused("--alter needs --partitions; settings are altered with `ottla configs`")
    found = client.run(describe_topics).topics
    counts = {row.name: len(row.partitions) for row in found if row.name is not None}
    names = matching(list(counts), expression, if_exists)
    assignments = None
    if replica_assignment is not None:
        placed = [tuple(brokers) for brokers in parse_assignment(replica_assignment)]
        assignments = {name: placed[counts[name] :] for name in names}
    rows = client.run(create_partitions, dict.fromkeys(names, partitions), assignments=assignments)
    for row in rows:
        _check(row)


def delete(client: Client, expression: str, if_exists: bool) -> None:
    """Delete topics."""
    known = [row.name for row in client.run(describe_topics).topics if row.name is not None]
    names = matching(known, expression, if_exists)
    for row in client.run(delete_topics, names) if names else []:
        _check(row)


def matching(known: list[str], expression: str, if_exists: bool) -> list[str]:
    """The topics whose whole name an expression matches; none is refused, unless that is allowed."""
    wanted = pattern("--topic", expression)
    names = sorted(name for name in known if wanted.fullmatch(name))
    if not names and not if_exists:
        raise CommandRefused(f"Topic '{expression}' does not exist as expected; see `ottla topics --list`")
    return names


def parse_assignment(text: str) -> list[list[int]]:
    """``0:1,1:2``: the brokers of partition 0, of partition 1, and so on."""
    try:
        partitions = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise UsageRefused(f"--replica-assignment {text!r} is not of the form 0:1,1:2,...") from None
    for number, brokers in enumerate(partitions):
        if len(set(brokers)) != len(brokers):
            raise UsageRefused(f"--replica-assignment names a broker twice for partition {number}")
        if len(brokers) != len(partitions[0]):
            raise UsageRefused(f"--replica-assignment gives partition {number} another replication factor")
    return partitions


def _check(row: Any) -> None:
    if row.error_code:
        raise CommandRefused(f"{row.name}: {reason(row.error_code, row.error_message)}")
