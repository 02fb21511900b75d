"""Replicas that a plan moves to other log directories of their brokers, in Kafka's words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import typer

from ottla.cli.shared.connection import reason
from ottla.cli.shared.json_files import partition_rows
from ottla.cli.shared.refusal import CommandRefused
from ottla.client.admin.cluster import alter_replica_log_dirs, describe_log_dirs
from ottla.client.blocking.client import Client
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ANY = "any"
PAUSE_MS, LOOK_MS = 100, 500


class Replica(NamedTuple):
    """A partition on a broker."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.broker}"


Moves = dict[Replica, str]
"""Which directory each replica shall lie in; those with any are left out."""


@dataclass(frozen=True, slots=True)
class Directories:
    """The moves of a plan between directories, how long their start may take, and bytes a second."""

    moves: Moves = field(default_factory=dict)
    timeout_ms: int = 10_000
    throttle: int = -1


def read_moves(path: Path) -> Moves:
    """The directories that a plan names."""
    moves: Moves = {}
    for name, row in partition_rows(path):
        if "log_dirs" not in row:
            continue
        replicas, directories = row["replicas"], row["log_dirs"]
        if not isinstance(directories, list) or not all(isinstance(part, str) for part in directories):
            raise CommandRefused(f"{path}: log_dirs of {name} is not a list: {json.dumps(directories)}")
        if len(directories) != len(replicas):
            raise CommandRefused(
                f"{path}: {name} has {len(replicas)} replicas and {len(directories)} log_dirs; each replica"
                f' has one, "{ANY}" where it does not matter'
            )
        moves.update(
            (Replica(name, broker), directory)
            for broker, directory in zip(replicas, directories, strict=True)
            if directory != ANY
        )
    return moves


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica lies, and where it is on its way to."""

    directory: str | None = None
    future: str | None = None


def places(client: Client, moves: Moves) -> dict[Replica, Place]:
    """Where these replicas are now."""
    brokers = sorted({replica.broker for replica in moves} & client.engine.metadata.brokers.keys())
    found = dict.fromkeys(moves, Place())
    described = client.run(describe_log_dirs, brokers, sorted({replica.partition for replica in moves}))
    for broker, directories in described.items():
        for directory in directories:
            for topic in directory.topics:
                for row in topic.partitions:
                    replica = Replica(TopicPartition(topic.name, row.partition_index), broker)
                    if replica not in found:
                        continue
                    known = found[replica]
                    found[replica] = (
                        Place(known.directory, directory.log_dir)
                        if row.is_future_key
                        else Place(directory.log_dir, known.future)
                    )
    return found


def state_line(replica: Replica, wanted: str, place: Place) -> str:
    """What is to be said of one move."""
    where = f"Partition {replica.partition} on broker {replica.broker}"
    if place.future == wanted:
        return f"Reassignment of replica {replica} is still in progress."
    if place.future is not None:
        return f"{where} is being moved to log dir {place.future} instead of {wanted}."
    if place.directory == wanted:
        return f"Reassignment of replica {replica} completed successfully."
    if place.directory is None:
        return (
            f"Partition {replica.partition} cannot be found in any live log directory"
            f" on broker {replica.broker}."
        )
    return f"{where} is not being moved from log dir {place.directory} to {wanted}."


def verify_moves(client: Client, moves: Moves) -> bool:
    """Say of each move how far it is; True when none goes on."""
    if not moves:
        typer.echo("")
        return True
    now = places(client, moves)
    for replica, wanted in sorted(moves.items()):
        typer.echo(state_line(replica, wanted, now[replica]))
    return all(place.future is None for place in now.values())


def start_moves(client: Client, moves: Moves, timeout_ms: int) -> None:
    """Ask the brokers for the moves; a replica that a broker has not got yet is asked for again."""
    left, waited_ms = dict(moves), 0
    while left:
        codes = client.run(alter_replica_log_dirs, _by_broker(left))
        for (name, broker), code in sorted(codes.items()):
            replica = Replica(name, broker)
            if code == ErrorCode.NONE:
                typer.echo(
                    f"Successfully started moving log directory to {left.pop(replica)} for replica"
                    f" {name} with broker {broker} "
                )
            elif code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise CommandRefused(f"Failed to alter dir for {replica}: {reason(code)}")
        if left and waited_ms >= timeout_ms:
            plural = "s" if len(left) > 1 else ""
            names = ",".join(str(replica) for replica in sorted(left))
            raise CommandRefused(f"Timed out before log directory move{plural} could be started for: {names}")
        if left:
            client.run_until(lambda: False, PAUSE_MS)
            waited_ms += PAUSE_MS


def wait_for_moves(client: Client, moves: Moves) -> None:
    """Stay until none of them goes on."""
    while moves and any(place.future is not None for place in places(client, moves).values()):
        client.run_until(lambda: False, LOOK_MS)


def cancel_moves(client: Client, moves: Moves, timeout_ms: int) -> None:
    """Those that are under way stay where they are."""
    now = places(client, moves) if moves else {}
    back = {
        replica: place.directory
        for replica, place in now.items()
        if place.future == moves[replica] and place.directory is not None
    }
    if back:
        start_moves(client, back, timeout_ms)
    else:
        typer.echo("None of the specified partition moves are active.")


def _by_broker(moves: Mapping[Replica, str]) -> dict[int, dict[TopicPartition, str]]:
    found: dict[int, dict[TopicPartition, str]] = {}
    for replica, directory in moves.items():
        found.setdefault(replica.broker, {})[replica.partition] = directory
    return found
