"""How much a plan moves, and how far it is: bytes that new replicas still have to fetch."""

import sys
import time

import typer

from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import print_rows
from ottla.cli.tools.reassign.reassignment import checked_plan
from ottla.client.admin.cluster import describe_log_dirs, list_partition_reassignments
from ottla.client.blocking.client import Client
from ottla.insight.plan import Pace, Plan, bytes_left, rehearsal_lines, rehearsed
from ottla.model.ids import TopicPartition

LOOK_MS = 500
SAY_S = 5.0
"""How often progress is told where it cannot be drawn."""


def rehearse(client: Client, plan: Plan, throttle: int, output: Output = Output.TABLE) -> None:
    """What a plan would do; nothing is changed."""
    present = checked_plan(client, plan)
    sizes = _sizes(client)
    moves = rehearsed(plan, present, sizes)
    if output is not Output.TABLE:
        print_rows([move.row() for move in moves], output)
        return
    typer.echo("\n".join(rehearsal_lines(moves, throttle)))


def wait(client: Client, plan: Plan, afterwards: str) -> None:
    """Stay until none of these partitions moves any more; ``afterwards`` is what else ends the matter."""
    try:
        _wait(client, plan)
    except KeyboardInterrupt:
        typer.echo(f"\nottla: the moves go on; {afterwards}", err=True)
        raise


def _wait(client: Client, plan: Plan) -> None:
    is_terminal = sys.stdout.isatty()
    said_at = -SAY_S
    pace = Pace()
    while True:
        moving = {n: m for n, m in client.run(list_partition_reassignments).items() if n in plan}
        left = _bytes_left(client, {name: move.adding_replicas for name, move in moving.items()})
        now = time.monotonic()
        progress = pace.progress(now, len(moving), left)
        if is_terminal:
            typer.echo(f"\r\x1b[K{progress.bar()}{progress}", nl=not moving)
        elif not moving or now - said_at >= SAY_S:
            said_at = now
            typer.echo(str(progress))
        if not moving:
            return
        client.run_until(lambda: False, LOOK_MS)


def _bytes_left(client: Client, adding: dict[TopicPartition, tuple[int, ...]]) -> int:
    if not adding:
        return 0
    return bytes_left(adding, _sizes(client))


def _sizes(client: Client) -> dict[tuple[TopicPartition, int], int]:
    found = client.run(describe_log_dirs, sorted(client.engine.metadata.brokers))
    return {
        (TopicPartition(topic.name, row.partition_index), broker): row.partition_size
        for broker, directories in found.items()
        for directory in directories
        for topic in directory.topics
        for row in topic.partitions
    }
