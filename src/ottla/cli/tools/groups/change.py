"""``ottla consumer-groups --delete`` and ``--delete-offsets``."""

import typer

from ottla.cli.shared.connection import reason, sentence
from ottla.cli.shared.refusal import CommandRefused, UsageRefused
from ottla.cli.tools.groups.scope import named_partitions
from ottla.client.admin.groups import delete_group, delete_group_offsets
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError


def delete(client: Client, names: list[str]) -> None:
    """Delete groups; what could not be deleted is told one by one."""
    done: list[str] = []
    failed: dict[str, str] = {}
    for name in names:
        try:
            client.run(delete_group, name)
        except ClientError as error:
            failed[name] = sentence(error)
        else:
            done.append(name)
    quoted = ", ".join(f"'{name}'" for name in done)
    if not failed:
        typer.echo(f"Deletion of requested consumer groups ({quoted}) was successful.")
        return
    if done:
        typer.echo(f"These consumer groups were deleted successfully: {quoted}")
    for name, why in failed.items():
        typer.echo(f"* Group '{name}' could not be deleted due to: {why}", err=True)
    raise CommandRefused("Deletion of some consumer groups failed")


def delete_offsets(client: Client, names: list[str], topics: list[str]) -> None:
    """Forget one group's offsets of some topics."""
    if len(names) != 1:
        raise UsageRefused("--delete-offsets works on one group at a time")
    if not topics:
        raise UsageRefused("--delete-offsets needs --topic")
    partitions = named_partitions(client, topics)
    codes = client.run(delete_group_offsets, names[0], partitions)
    failed = {name: code for name, code in codes.items() if code}
    shown = ", ".join(dict.fromkeys(name.topic for name in partitions))
    if not failed:
        typer.echo(f"Request succeed for deleting offsets with topic {shown} group {names[0]}")
    typer.echo(f"\n{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}".rstrip())
    for name, code in sorted(codes.items()):
        status = f"Error: {reason(code)}" if code else "Successful"
        typer.echo(f"{name.topic:<30} {name.partition:<15} {status}")
    if failed:
        raise CommandRefused(f"the offsets of {len(failed)} partitions were not deleted")
