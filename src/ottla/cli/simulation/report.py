"""What ``ottla sim`` prints: one story, or the sum of many runs."""

import logging
import secrets
import sys
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import typer

from ottla.cli.shared.signals import stop_between
from ottla.sim.plan import FAULT_SECONDS, Plan
from ottla.sim.run import Outcome, plan_of, run_plan, run_seed
from ottla.sim.shrink import LESS, Shrinker, without

STORY_LINES_OF_A_FAILURE = 40


@dataclass(frozen=True)
class Replay:
    """A seed, and which part of it to play."""

    seed: int
    seconds: int
    until: int | None = None
    brokers: int | None = None
    faults: str | None = None
    left_out: str = ""

    def plan(self) -> Plan:
        plan = plan_of(self.seed, self.seconds)
        if self.until is not None:
            plan = plan.shorter(self.until)
        if self.brokers is not None:
            plan = plan.with_brokers(self.brokers)
        if self.faults is not None:
            plan = plan.keeping(tuple(int(number) for number in self.faults.split(",") if number))
        return without(plan, self.parts())

    def parts(self) -> tuple[str, ...]:
        parts = tuple(part for part in self.left_out.split(",") if part)
        unknown = [part for part in parts if part not in LESS]
        if unknown:
            raise typer.BadParameter(f"--without knows {', '.join(LESS)}, not {', '.join(unknown)}")
        return parts


def play_one(replay: Replay, *, is_quiet: bool, shrink: bool, with_log: bool) -> bool:
    """Play one seed and print its story as it happens; returns whether it failed."""
    _tell_brokers_lines(with_log)
    plan = replay.plan()
    if not is_quiet:
        typer.echo(_beginning(plan))
    started = time.monotonic()
    outcome = run_plan(plan, None if is_quiet else typer.echo)
    elapsed_s = time.monotonic() - started
    verdict = outcome.failure or "every promise was kept"
    typer.echo(
        f"seed {replay.seed}: {verdict}\n"
        f"  {outcome.virtual_seconds:.0f} virtual seconds in {elapsed_s:.1f} s, {outcome.events} events, "
        f"{outcome.acknowledged} records acknowledged, {outcome.read} read, {outcome.commits} offsets "
        f"committed, {outcome.faults.total()} faults, {outcome.elections} elections, trace {outcome.trace}"
    )
    if outcome.failure is not None and shrink:
        logging.disable(logging.CRITICAL)
        _shrink(replay, plan, outcome.failure)
    return outcome.failure is not None


def _beginning(plan: Plan) -> str:
    """Who is there, in one paragraph."""
    shape = plan.shape
    topics = ", ".join(f"{topic.name} ({topic.partitions} partitions)" for topic in shape.topics)
    static = min(shape.members, shape.static_members)
    also = [f"a group of {shape.members}, {static} of them static"] if shape.members else []
    also += ["topics that come and go"] if shape.churns else []
    also += ["a producer that does not retry"] if shape.careless_producers else []
    return (
        f"{shape.brokers} brokers with {shape.directories} log directories each; {topics}; "
        f"{'; '.join([f'{shape.producers} producers', *also])}; "
        f"{len(plan.strikes)} faults in {plan.seconds} s"
    )


def _shrink(replay: Replay, plan: Plan, failure: str) -> None:
    shrinker = Shrinker(
        plan, failure, lambda smaller: run_plan(smaller).failure, lambda line: typer.echo(f"  {line}")
    )
    small = shrinker.shrink()
    typer.echo(f"  after {shrinker.runs} runs: {shrinker.failure}")
    typer.echo(f"  replay: {_command(replay, small, shrinker.left_out)}")


def _command(replay: Replay, plan: Plan, left_out: list[str]) -> str:
    """What to type to see a reduced plan again."""
    whole = plan_of(plan.seed, replay.seconds)
    words = [f"ottla sim {plan.seed}"]
    if replay.seconds != FAULT_SECONDS:
        words.append(f"--seconds {replay.seconds}")
    if plan.seconds != whole.seconds:
        words.append(f"--until {plan.seconds}")
    if plan.shape.brokers != whole.shape.brokers:
        words.append(f"--brokers {plan.shape.brokers}")
    words.append(f"--faults '{','.join(str(strike.number) for strike in plan.strikes)}'")
    if parts := ",".join((*replay.parts(), *left_out)):
        words.append(f"--without {parts}")
    return " ".join(words)


def _tell_brokers_lines(with_log: bool) -> None:
    """Print what the brokers log as part of the story, if asked for."""
    if not with_log:
        logging.disable(logging.CRITICAL)
    else:
        logging.basicConfig(level=logging.INFO, format="              %(message)s", handlers=[_Teller()])


class _Teller(logging.Handler):
    """Prints what is logged; a closed pipe ends the story instead of being logged itself."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(self.format(record))


def _run(arguments: tuple[int, int]) -> Outcome:
    logging.disable(logging.CRITICAL)
    outcome = run_seed(*arguments)
    if outcome.failure is None:
        outcome.story = []
    return outcome


def outcomes_of(work: list[tuple[int, int]], jobs: int) -> Generator[Outcome, None, None]:
    """Play seeds, in so many processes; those not begun when it is closed are not played."""
    if jobs == 1:
        yield from map(_run, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run, work, chunksize=1)


@dataclass
class Sums:
    """What many seeds came to."""

    seeds: int = 0
    virtual_s: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.virtual_s += outcome.virtual_seconds
        self.counts.update(
            events=outcome.events,
            acknowledged=outcome.acknowledged,
            read=outcome.read,
            commits=outcome.commits,
            transactions=outcome.transactions,
            elections=outcome.elections,
        )
        self.faults.update(outcome.faults)
        self.calls.update(outcome.calls)
        if outcome.failure is not None:
            self.failed.append(outcome.seed)

    def lines(self, elapsed_s: float) -> list[str]:
        counts = self.counts
        lines = [
            f"{self.seeds - len(self.failed)} of {self.seeds} seeds kept every promise",
            f"  {self.virtual_s:.0f} virtual seconds in {elapsed_s:.0f} s "
            f"({self.virtual_s / elapsed_s:.0f} to 1), {counts['events']} events "
            f"({counts['events'] / elapsed_s:.0f} a second)",
            f"  {counts['acknowledged']} records acknowledged, {counts['read']} read, "
            f"{counts['commits']} offsets and {counts['transactions']} transactions committed, "
            f"{counts['elections']} elections",
            f"  {self.faults.total()} faults of {len(self.faults)} kinds: {_listed(self.faults)}",
            f"  {self.calls.total()} requests to {len(self.calls)} APIs: {_listed(self.calls)}",
        ]
        return lines + ([f"  failed: {', '.join(map(str, self.failed))}"] if self.failed else [])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {times}" for name, times in sorted(counts.items()))


def play_many(first: int | None, count: int, jobs: int, seconds: int) -> bool:
    """Run many seeds; failing ones are told with the end of their story. Whether any failed.

    Ctrl-C ends it after the seeds that are being played, with the figures so far.
    """
    start = secrets.randbelow(2**31) if first is None else first
    typer.echo(f"seeds {start} to {start + count - 1}, {seconds} s of faults each")
    started = time.monotonic()
    sums = Sums()
    is_terminal = sys.stdout.isatty()
    wiped = "\r\x1b[K" if is_terminal else ""
    work = [(start + number, seconds) for number in range(count)]
    with stop_between() as stop, closing(outcomes_of(work, jobs)) as outcomes:
        for outcome in outcomes:
            sums.add(outcome)
            if outcome.failure is not None:
                typer.echo(wiped + "\n".join(outcome.story[-STORY_LINES_OF_A_FAILURE:]))
                typer.echo(
                    f"seed {outcome.seed} FAILED: {outcome.failure}\n  replay: ottla sim {outcome.seed}"
                )
            if is_terminal:
                typer.echo(f"\r{sums.seeds}/{count} seeds, {len(sums.failed)} failed ", nl=False)
            if stop.asked:
                break
    typer.echo(wiped + "\n".join(sums.lines(max(time.monotonic() - started, 0.001))))
    if stop.asked:
        raise typer.Exit(130)
    return bool(sums.failed)
