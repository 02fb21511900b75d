"""``python -m chaos`` (``make chaos``): one run of chaos, told while it goes on, judged at the end."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from chaos.network import is_inside, move_inside
from chaos.options import parse
from chaos.report import summary
from chaos.run import Run


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.is_mixed:
        from support.processes.lab import kafka_jars

        kafka_jars()  # while there is still a way to the outside
    if not is_inside():
        tell(f"seed {options.seed}, {options.seconds:.0f} s")
        seeded = [*arguments, "--seed", str(options.seed)]
        reason = move_inside(seeded)
        tell(f"network and disks cannot be hurt here ({reason}): those faults are left out")
    directory = options.keep or Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
    is_kept = True
    try:
        run = Run(options, directory, tell)
        outcome = run.run()
        tell(summary(options, outcome))
        is_kept = options.keep is not None or bool(outcome.violations)
        return 1 if outcome.violations else 0
    finally:
        if is_kept:
            tell(f"history, logs and data are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


sys.exit(main(sys.argv[1:]))
