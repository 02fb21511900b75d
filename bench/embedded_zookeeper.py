"""From nothing to a usable session on the embedded ZooKeeper: how long a start and a stop take."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from bars import EMBEDDED_START_S
from history import record

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper, Ensemble

STARTS = 5


def main() -> int:
    """Start and stop it some times; the median must stay under the bar."""
    starts_s, stops_s = [], []
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as directory:
        for number in range(STARTS):
            begun = time.perf_counter()
            with EmbeddedZooKeeper(Path(directory) / str(number)):
                ready = time.perf_counter()
            starts_s.append(ready - begun)
            stops_s.append(time.perf_counter() - ready)
        begun = time.perf_counter()
        with Ensemble(Path(directory) / "ensemble"):
            ensemble_s = time.perf_counter() - begun
    start_s, stop_s = statistics.median(starts_s), statistics.median(stops_s)
    print(f"{'start to session, s (median)':<32}{start_s:>8.2f}   bar {EMBEDDED_START_S.number:.0f}")
    print(f"{'start to session, s (best)':<32}{min(starts_s):>8.2f}")
    print(f"{'stop, s (median)':<32}{stop_s:>8.2f}")
    print(f"{'ensemble of three, s':<32}{ensemble_s:>8.2f}")
    numbers = {"start_s": start_s, "best_start_s": min(starts_s), "stop_s": stop_s, "ensemble_s": ensemble_s}
    if "--no-history" not in sys.argv:
        record("embedded_zookeeper", {name: round(value, 3) for name, value in numbers.items()})
    return 0 if EMBEDDED_START_S.is_met(start_s) else 1


if __name__ == "__main__":
    sys.exit(main())
