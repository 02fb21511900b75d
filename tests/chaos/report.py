"""The summary of a run, for people."""

from __future__ import annotations

from chaos.options import Options
from chaos.run import Outcome

PROMISES = (
    *("lost", "duplicated", "reordered", "changed", "vanished", "phantom", "unseen"),
    *("nonmonotonic poll", "skipped by a poll", "committed offset lost", "two leaders in one epoch"),
    *("unanswered", "starved"),
    *("topic lost", "topic came back"),
    *("copied wrongly", "copies changed", "copier broke"),
)


def summary(options: Options, outcome: Outcome) -> str:
    """Several lines: what was done, what clients saw, what is wrong."""
    verdict, seen = outcome.verdict, outcome.availability
    faults = sum(outcome.injected.values())
    lines = [
        "",
        f"seed {options.seed}: {outcome.seconds:.0f} s of load, {faults} faults in {outcome.rounds} rounds",
        *(f"  {count:4} × {kind}" for kind, count in sorted(outcome.injected.items())),
        f"{'acknowledged':24}  {verdict.acknowledged:,}"
        f" (failed {verdict.failed}, in the logs at the end {verdict.final:,})",
        *(f"{promise:24}  {verdict.counts[promise]}" for promise in PROMISES),
        f"led again after a fault healed, worst      {max(seen.led_again, default=0):.1f} s"
        f" (allowed {options.bound_s:.0f} s)",
        f"written again after a fault healed, worst  {max(seen.written_again, default=0):.1f} s",
        "longest time without an acknowledgement, by partition: "
        + ", ".join(
            f"{partition}: {gap:.1f} s" for partition, gap in sorted(seen.longest_without_ack.items())
        ),
    ]
    if options.copiers:
        lines.append(
            f"copied in transactions: {verdict.copied:,}; copiers that were fenced: {verdict.fenced}"
        )
    if verdict.clients_locked:
        lines.append(f"clients whose librdkafka locked itself and was replaced: {verdict.clients_locked}")
    for trend in outcome.trends:
        lines.append(
            f"broker {trend.broker} over {trend.minutes:.0f} min:"
            f" memory {trend.memory_mib[0]:.1f} → {trend.memory_mib[1]:.1f} MiB"
            f" ({trend.memory_mib_per_hour:+.1f} MiB/h), files {trend.files[0]:.0f} → {trend.files[1]:.0f},"
            f" threads {trend.threads[0]:.1f} → {trend.threads[1]:.1f}"
        )
    violations = outcome.violations
    lines += [f"VIOLATED  {text}" for text in violations]
    lines.append(f"{len(violations)} violations" if violations else "every promise was kept")
    return "\n".join(lines)
