"""What ``ottla sim`` prints: one story, or the sum of many runs."""

import logging
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import typer

from ottla.sim.run import Outcome, run_seed

STORY_LINES_OF_A_FAILURE = 40


def play_one(seed: int, seconds: int, *, is_quiet: bool, shrink: bool) -> bool:
    """Play one seed, telling its story as it happens; whether it failed."""
    _tell_brokers_lines(is_quiet)
    started = time.monotonic()
    outcome = run_seed(seed, seconds, None if is_quiet else typer.echo)
    elapsed_s = time.monotonic() - started
    verdict = outcome.failure or "every promise was kept"
    typer.echo(
        f"seed {seed}: {verdict}\n"
        f"  {outcome.virtual_seconds:.0f} virtual seconds in {elapsed_s:.1f} s, {outcome.events} events, "
        f"{outcome.acknowledged} records acknowledged, {outcome.read} read, "
        f"{outcome.faults.total()} faults, trace {outcome.trace}"
    )
    if outcome.failure is not None and shrink:
        typer.echo(f"  it fails with --seconds {_shortest(seed, seconds)} already")
    return outcome.failure is not None


def _tell_brokers_lines(is_quiet: bool) -> None:
    """What the brokers log belongs to the story; without a story nobody wants it."""
    if is_quiet:
        logging.disable(logging.CRITICAL)
    else:
        logging.basicConfig(level=logging.INFO, format="              %(message)s", handlers=[_Teller()])


class _Teller(logging.Handler):
    """Prints what is logged; a closed pipe ends the story instead of being logged itself."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record))


def _shortest(seed: int, seconds: int) -> int:
    """The fewest seconds of faults that still fail: halving while it fails, then up again."""
    low, high = 0, seconds
    while low < high:
        middle = (low + high) // 2
        if run_seed(seed, middle).failure is not None:
            high = middle
        else:
            low = middle + 1
    return high


def _run(arguments: tuple[int, int]) -> Outcome:
    logging.disable(logging.CRITICAL)
    outcome = run_seed(*arguments)
    if outcome.failure is None:
        outcome.story = []
    return outcome


def _outcomes(work: list[tuple[int, int]], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(_run, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run, work, chunksize=1)


def play_many(first: int | None, count: int, jobs: int, seconds: int) -> bool:
    """Run many seeds; failing ones are told with the end of their story. Whether any failed."""
    start = secrets.randbelow(2**31) if first is None else first
    typer.echo(f"seeds {start} to {start + count - 1}, {seconds} s of faults each")
    started = time.monotonic()
    sums: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    virtual_s = 0.0
    failed: list[int] = []
    for number, outcome in enumerate(_outcomes([(start + i, seconds) for i in range(count)], jobs), 1):
        virtual_s += outcome.virtual_seconds
        sums.update(events=outcome.events, acknowledged=outcome.acknowledged, read=outcome.read)
        faults.update(outcome.faults)
        if outcome.failure is not None:
            failed.append(outcome.seed)
            typer.echo("\n".join(outcome.story[-STORY_LINES_OF_A_FAILURE:]))
            typer.echo(f"seed {outcome.seed} FAILED: {outcome.failure}\n  replay: ottla sim {outcome.seed}")
        if sys.stdout.isatty():
            typer.echo(f"\r{number}/{count} seeds, {len(failed)} failed ", nl=False)
    elapsed_s = max(time.monotonic() - started, 0.001)
    typer.echo(
        f"{count - len(failed)} of {count} seeds kept every promise\n"
        f"  {virtual_s:.0f} virtual seconds in {elapsed_s:.0f} s ({virtual_s / elapsed_s:.0f} to 1), "
        f"{sums['events']} events ({sums['events'] / elapsed_s:.0f} a second)\n"
        f"  {sums['acknowledged']} records acknowledged, {sums['read']} read\n"
        f"  faults: {', '.join(f'{name} {times}' for name, times in sorted(faults.items()))}"
    )
    if failed:
        typer.echo(f"  failed: {', '.join(map(str, failed))}")
    return bool(failed)
