"""The built-in keeper beside Apache's server, in turns: both sync every write before they answer it.

    python bench/keeper.py                          # 100,000 nodes, and 10,000 partitions on either
    python bench/keeper.py --rows session data --nodes 5000    # a quick look
    python bench/keeper.py --starts 1000            # clusters of one and three brokers, started and stopped

``--rows`` chooses. *session*: from nothing to a session, and idle memory. *data*: fenced writes and bulk
reads of all nodes, one get and one set, memory; both servers run on, and the first round, which warms them,
is dropped. *control*: ``bench/controller.py``'s topic of 10,000 partitions, Ottla's brokers on either server.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from _sides import median, running_sides
from bars import KEEPER, Bar
from controller import Bench
from history import record
from zookeeper import fenced, prepare, state_of, state_paths

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.launch.zookeeper.choice import APACHE
from ottla.launch.zookeeper.choice import KEEPER as BUILT_IN
from ottla.launch.zookeeper.keeper import EmbeddedKeeper
from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.testing import start_cluster
from ottla.zookeeper.ops import ANY_VERSION, Data, DataSet, GetData, SetData

ROWS = ("session", "data", "control")
ROUNDS = 7
DATA_ROUNDS = 3
SINGLES = 2_000
SERVERS = {BUILT_IN: EmbeddedKeeper, APACHE: EmbeddedZooKeeper}

Figures = dict[str, dict[str, list[float]]]


def main() -> int:
    """Measure, print the rows, keep them; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--starts", type=int, default=0, help="only start and stop clusters, so many times")
    parser.add_argument("--no-history", action="store_true", help="do not append to bench/history.jsonl")
    given = parser.parse_args()
    if given.starts:
        return starts_and_stops(given.starts)
    found: Figures = defaultdict(lambda: defaultdict(list))
    if "session" in given.rows:
        sessions(found)
    if "data" in given.rows:
        asyncio.run(data(found, given.nodes))
    if "control" in given.rows:
        control(found, given.partitions)
    numbers = {
        what: {"ottla": median(by[BUILT_IN]), "apache": median(by[APACHE])} for what, by in found.items()
    }
    missed = show(numbers)
    if not given.no_history:
        kept = {what: {side: round(value, 6) for side, value in by.items()} for what, by in numbers.items()}
        record("keeper", {"nodes": given.nodes, "partitions": given.partitions, "rows": kept})
    return 1 if missed else 0


def bar_of(what: str) -> Bar | None:
    """The bar of a row, if it has one; those of the control plane share one."""
    return KEEPER["control"] if what.startswith("control: ") and "MB" not in what else KEEPER.get(what)


def show(numbers: dict[str, dict[str, float]]) -> list[str]:
    """A line for each row; those that miss their bar."""
    missed = []
    print(f"{'':<44}{'keeper':>12}{'apache':>12}{'ratio':>8}   bar")
    for what, by in numbers.items():
        bar = bar_of(what)
        is_missed = bar is not None and not bar.is_met(by["ottla"], by["apache"])
        limit = "" if bar is None else f"{bar.sign} {bar.number}"
        ratio = by["ottla"] / by["apache"]
        print(
            f"{what:<44}{by['ottla']:>12,.2f}{by['apache']:>12,.2f}{ratio:>8.2f}"
            f"   {limit}{'  MISSED' * is_missed}"
        )
        missed += [what] * is_missed
    return missed


# -- nothing to a session ----------------------------------------------------------------------


def sessions(found: Figures) -> None:
    """Each server from nothing, in turns."""
    for _ in range(ROUNDS):
        for name, kind in SERVERS.items():
            with tempfile.TemporaryDirectory(prefix="ottla-bench-") as directory:
                begun = time.perf_counter()
                with kind(Path(directory)) as server:
                    found["nothing to a session, s"][name].append(time.perf_counter() - begun)
                    found["idle memory, MB"][name].append(resident_mb(server.pid))


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6


# -- data ----------------------------------------------------------------------------------------


async def data(found: Figures, count: int) -> None:
    """Both servers hold the nodes and take turns."""
    nodes = state_paths(count)
    with ExitStack() as stack:
        servers = {}
        for name, kind in SERVERS.items():
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-"))
            servers[name] = stack.enter_context(kind(Path(directory)))
            await prepare(servers[name].connect, nodes)
        for number in range(DATA_ROUNDS + 1):
            for name, server in servers.items():
                for what, value in (await one_round(server.connect, nodes, number)).items():
                    if number:
                        found[what][name].append(value)
        for name, server in servers.items():
            found[f"memory with {count:,} nodes, MB"][name].append(resident_mb(server.pid))


async def one_round(connect: str, nodes: list[str], number: int) -> dict[str, float]:
    """Writes and reads of all nodes, and of one after the other."""
    client = await ZooKeeperClient.connect(connect)
    begun = time.perf_counter()
    await fenced(client, (SetData(path, state_of(n, number), ANY_VERSION) for n, path in enumerate(nodes)))
    written = time.perf_counter()
    results = await client.read_many([GetData(path) for path in nodes])
    read = time.perf_counter()
    assert all(isinstance(result, Data) for result in results)
    gets_us, sets_us = [], []
    for place in range(SINGLES):
        path = nodes[place % len(nodes)]
        started = time.perf_counter()
        assert isinstance(await client.submit(GetData(path)), Data)
        between = time.perf_counter()
        assert isinstance(await client.submit(SetData(path, b"1", ANY_VERSION)), DataSet)
        gets_us.append((between - started) * 1e6)
        sets_us.append((time.perf_counter() - between) * 1e6)
    await client.close()
    return {
        "fenced writes, nodes/s": len(nodes) / (written - begun),
        "bulk reads, nodes/s": len(nodes) / (read - written),
        "one get, us": median(gets_us),
        "one set, us": median(sets_us),
    }


# -- brokers on either -----------------------------------------------------------------------------


def control(found: Figures, partitions: int) -> None:
    """Ottla's brokers through a topic's life, once on each server."""
    for name in SERVERS:
        with running_sides(["ottla"], is_started=False, sync=True, zookeeper=name) as (side,):
            side.start()
            bench = Bench(side, partitions)
            for measure, value in bench.life().items():
                unit = "" if "MB" in measure else ", s"
                found[f"control: {measure}{unit}"][name].append(value)
            bench.close()


def starts_and_stops(count: int) -> int:
    """Clusters of one and of three brokers in turns; how many did not start, and why."""
    failures = 0
    begun = time.perf_counter()
    for number in range(count):
        try:
            with start_cluster(3 if number % 2 else 1) as cluster:
                cluster.topic()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what this counts
            failures += 1
            print(f"start {number}: {error!r}", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - begun
    print(f"{count} starts and stops in {seconds:.0f} s, {failures} failed")
    record("keeper starts", {"starts": count, "failures": failures, "seconds": round(seconds, 1)})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
