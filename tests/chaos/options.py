"""What can be asked of a run, on the command line or from a test."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.planted import BUGS

SECONDS, SOAK_SECONDS, MIXED_SECONDS = 900, 1200, 480
COPIED_RATE = 400


@dataclass(frozen=True, slots=True)
class Options:
    """One run."""

    seconds: float
    seed: int
    brokers: int = 4
    is_mixed: bool = False
    is_soak: bool = False
    partitions: int = 8
    producers: int = 2
    copiers: int = 0
    """Processes that copy everything in transactions."""
    producers_of: str = "librdkafka"
    """Whose client writes: librdkafka's, Java's, or Ottla's own."""
    rate: float = 2500
    """Records a second of all producers together."""
    record_bytes: int = 100
    session_ms: int = 3000
    kinds: tuple[str, ...] = ()
    """Only these faults; all that are possible where none is named."""
    planted: str | None = None
    slack_s: float = 0.0
    keep: Path | None = None

    @property
    def broker_kinds(self) -> list[str]:
        if self.is_mixed:
            return ["ottla", "apache"] * 2
        return [self.planted or "ottla"] * self.brokers

    @property
    def patience_s(self) -> float:
        """How old a broker's answer may be: where slack is allowed, others use the processors too."""
        return 3.0 if self.slack_s else 1.0

    @property
    def bound_s(self) -> float:
        """How soon after a fault healed every partition must be led."""
        return self.session_ms / 1000 + (15 if self.is_mixed else 5) + self.slack_s


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="make chaos",
        description="A cluster of real processes under load and faults; what clients saw is checked.",
        epilog="With make: SECONDS=60 SEED=7 MIXED=1 SOAK=1, and ARGS='...' for the rest.",
    )
    parser.add_argument(
        "--seconds", type=float, help="how long load and faults last (900; mixed 480; soak 1200)"
    )
    parser.add_argument("--seed", type=int, help="the seed of all choices (else a new one, which is printed)")
    parser.add_argument(
        "--brokers", type=int, default=4, choices=(3, 4, 5), help="how many Ottla brokers (4)"
    )
    parser.add_argument(
        "--mixed", action="store_true", help="two Ottla and two Apache Kafka 3.9 brokers in one cluster"
    )
    parser.add_argument(
        "--soak",
        action="store_true",
        help="steady load; faults end one broker alone; are memory, files, threads flat?",
    )
    parser.add_argument(
        "--rate",
        type=float,
        help="records a second of all producers together (2500; mixed 800; with copiers 400)",
    )
    parser.add_argument(
        "--producers-of",
        choices=("librdkafka", "java", "ottla"),
        default="librdkafka",
        help="whose client writes: tells a client's faults from the cluster's",
    )
    parser.add_argument(
        "--copiers",
        type=int,
        default=0,
        help="so many processes copy everything to another topic in transactions, and are hurt as well (0)",
    )
    parser.add_argument("--session-ms", type=int, help="the brokers' session time-out (3000; mixed 6000)")
    parser.add_argument(
        "--kind", action="append", default=[], help="only faults of this kind; may be repeated"
    )
    parser.add_argument("--planted", choices=sorted(BUGS), help="run with a bug: the checker has to find it")
    parser.add_argument(
        "--slack", type=float, default=0, help="seconds more until led again: on machines with other work"
    )
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep history, logs and data there")
    asked = parser.parse_args(arguments)
    if asked.soak and asked.copiers:
        parser.error("--copiers compares with records that --soak has removed: leave one of them out")
    usual = SOAK_SECONDS if asked.soak else MIXED_SECONDS if asked.mixed else SECONDS
    return Options(
        seconds=asked.seconds or usual,
        seed=secrets.randbelow(1_000_000) if asked.seed is None else asked.seed,
        brokers=asked.brokers,
        is_mixed=asked.mixed,
        is_soak=asked.soak,
        producers_of=asked.producers_of,
        copiers=asked.copiers,
        rate=asked.rate or (COPIED_RATE if asked.copiers else 800 if asked.mixed else 2500),
        session_ms=asked.session_ms or (6000 if asked.mixed else 3000),
        kinds=tuple(asked.kind),
        planted=asked.planted,
        slack_s=asked.slack,
        keep=asked.keep,
    )
