"""How much a plan moves, and how far it is: bytes that new replicas still have to fetch."""

import sys
import time
from collections import deque
from dataclasses import dataclass

import typer

from ottla.cli.shared.options import Output
from ottla.cli.shared.printing import joined, print_rows, table
from ottla.cli.tools.reassignment import checked_plan
from ottla.cli.tools.reassignment_plan import Plan
from ottla.client.admin.cluster import describe_log_dirs, list_partition_reassignments
from ottla.client.blocking import Client
from ottla.model.ids import TopicPartition

LOOK_MS = 500
SAY_S = 5.0
"""How often progress is told where it cannot be drawn."""
PACE_S = 15.0
"""The pace is that of so many last seconds: throttled replicas fetch in bursts."""
BAR_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Progress:
    """What is left, and how long it takes at the present pace."""

    partitions: int
    bytes_left: int
    bytes_per_s: float
    bytes_all: int = 0

    def bar(self) -> str:
        """``[#####.....] ``, or nothing when there was nothing to fetch."""
        if not self.partitions or not self.bytes_all:
            return ""
        done = BAR_COLUMNS * (self.bytes_all - self.bytes_left) // self.bytes_all
        return f"[{'#' * done}{'.' * (BAR_COLUMNS - done)}] "

    def __str__(self) -> str:
        if self.partitions == 0:
            return "all partitions are moved"
        pace = f", {size_text(self.bytes_per_s)}/s" if self.bytes_per_s > 0 else ""
        eta = f", about {self.bytes_left / self.bytes_per_s:.0f} s left" if self.bytes_per_s > 0 else ""
        return f"{self.partitions} partitions move, {size_text(self.bytes_left)} to fetch{pace}{eta}"


def rehearse(client: Client, plan: Plan, throttle: int, output: Output = Output.TABLE) -> None:
    """What a plan would do; nothing is changed."""
    present = checked_plan(client, plan)
    sizes = _sizes(client)
    rows = []
    moves: list[dict[str, object]] = []
    total = 0
    for name, wanted in sorted(plan.items()):
        new = [broker for broker in wanted if broker not in present[name]]
        size = max((sizes.get((name, broker), 0) for broker in present[name]), default=0)
        total += size * len(new)
        moved = "stays" if wanted == present[name] else size_text(size * len(new))
        moves.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "now": present[name],
                "then": wanted,
                "bytes": size * len(new),
            }
        )
        rows.append((str(name), joined(present[name]), joined(wanted), moved))
    if output is not Output.TABLE:
        print_rows(moves, output)
        return
    typer.echo("\n".join(table(("PARTITION", "NOW", "THEN", "BYTES"), rows)))
    least = f", at least {total / throttle:.0f} s at {size_text(throttle)}/s" if throttle > 0 else ""
    typer.echo(f"{size_text(total)} would be copied{least}; nothing was changed")


class Pace:
    """How fast bytes come, from what was left at the last looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self.bytes_all = 0
        """The most that ever was left."""

    def progress(self, now: float, partitions: int, bytes_left: int) -> Progress:
        self.bytes_all = max(self.bytes_all, bytes_left)
        self._looks.append((now, bytes_left))
        while self._looks[0][0] < now - PACE_S:
            self._looks.popleft()
        then, left = self._looks[0]
        pace = (left - bytes_left) / (now - then) if now > then else 0.0
        return Progress(partitions, bytes_left, pace, self.bytes_all)


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
    sizes = _sizes(client)
    left = 0
    for name, brokers in adding.items():
        full = max((size for (held, _), size in sizes.items() if held == name), default=0)
        left += sum(max(0, full - sizes.get((name, broker), 0)) for broker in brokers)
    return left


def _sizes(client: Client) -> dict[tuple[TopicPartition, int], int]:
    found = client.run(describe_log_dirs, sorted(client.engine.metadata.brokers))
    return {
        (TopicPartition(topic.name, row.partition_index), broker): row.partition_size
        for broker, directories in found.items()
        for directory in directories
        for topic in directory.topics
        for row in topic.partitions
    }


def size_text(count: float) -> str:
    """``1.5 MB``."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
