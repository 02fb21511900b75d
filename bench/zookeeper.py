"""Ottla's ZooKeeper client beside kazoo, in one run against one real server.

    python bench/zookeeper.py                 # the full size: 100,000 nodes, some minutes, most of it kazoo's
    python bench/zookeeper.py --nodes 5000    # a quick look

Reads: many gets in a MultiRead, against asynchronous single gets. Writes: a Multi of one check and many sets,
against asynchronous single sets (unfenced, so that kazoo has the easier task) and against single fenced
transactions. Latency: one get after the other.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bars import ZOOKEEPER
from history import record
from kazoo.client import KazooClient

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.model.partition_state import LeaderAndIsr
from ottla.server.zookeeper.session import ZooKeeperClient
from ottla.znodes import paths
from ottla.znodes.codec import encode_partition_state
from ottla.zookeeper.batches import plan_fenced_writes
from ottla.zookeeper.ops import Check, Create, Created, Data, GetData, MultiDone, SetData, WriteOp

FENCE = Check(paths.CONTROLLER_EPOCH, 0)


def state_of(number: int, leader_epoch: int) -> bytes:
    """A partition's state, as a controller would write it."""
    return encode_partition_state(
        LeaderAndIsr(
            BrokerId(number % 3), LeaderEpoch(leader_epoch), (BrokerId(0), BrokerId(1), BrokerId(2)), 0, 1
        )
    )


def state_paths(count: int) -> list[str]:
    """Where the states are: a hundred partitions a topic."""
    return [paths.partition_state(TopicPartition(f"topic-{n // 100}", n % 100)) for n in range(count)]


async def fenced(client: ZooKeeperClient, ops: Iterable[WriteOp]) -> None:
    """All writes in fenced batches, sent one behind the other as a controller sends them."""
    for outcome in await asyncio.gather(*map(client.submit, plan_fenced_writes(FENCE, ops))):
        assert isinstance(outcome, MultiDone), outcome


async def prepare(connect: str, nodes: list[str]) -> None:
    """Make all nodes with a state."""
    client = await ZooKeeperClient.connect(connect)
    assert isinstance(await client.submit(Create(FENCE.path, b"1")), Created)
    made = dict.fromkeys(parent for node in nodes for parent in paths.parents(node))
    await fenced(client, [Create(path) for path in made])
    await fenced(client, [Create(path, state_of(number, 0)) for number, path in enumerate(nodes)])
    await client.close()


async def ours(connect: str, nodes: list[str], gets: int) -> dict[str, float]:
    """Seconds for all reads, all fenced writes, and the latencies of single gets."""
    began = time.perf_counter()
    client = await ZooKeeperClient.connect(connect)
    connected_s = time.perf_counter() - began
    began = time.perf_counter()
    results = await client.read_many([GetData(path) for path in nodes])
    reads_s = time.perf_counter() - began
    assert all(isinstance(result, Data) for result in results)
    began = time.perf_counter()
    await fenced(client, (SetData(path, state_of(n, 1), 0) for n, path in enumerate(nodes)))
    writes_s = time.perf_counter() - began
    latencies = []
    for number in range(gets):
        began = time.perf_counter()
        await client.submit(GetData(nodes[number % len(nodes)]))
        latencies.append(time.perf_counter() - began)
    await client.close()
    return {
        "connect_ms": connected_s * 1e3,
        "reads_s": reads_s,
        "writes_s": writes_s,
        **_latency(latencies),
    }


def kazoos(connect: str, nodes: list[str], gets: int) -> dict[str, float]:
    """The same with kazoo's asynchronous single operations."""
    client = KazooClient(connect)
    client.start()
    try:
        began = time.perf_counter()
        for answer in [client.get_async(path) for path in nodes]:
            answer.get()
        reads_s = time.perf_counter() - began
        began = time.perf_counter()
        for answer in [client.set_async(path, state_of(n, 2)) for n, path in enumerate(nodes)]:
            answer.get()
        writes_s = time.perf_counter() - began
        began = time.perf_counter()
        answers = []
        for number, path in enumerate(nodes):
            transaction = client.transaction()
            transaction.check(FENCE.path, 0)
            transaction.set_data(path, state_of(number, 3))
            answers.append(transaction.commit_async())
        for answer in answers:
            answer.get()
        fenced_s = time.perf_counter() - began
        latencies = []
        for number in range(gets):
            began = time.perf_counter()
            client.get(nodes[number % len(nodes)])
            latencies.append(time.perf_counter() - began)
    finally:
        client.stop()
        client.close()
    return {"reads_s": reads_s, "writes_s": writes_s, "fenced_writes_s": fenced_s, **_latency(latencies)}


def _latency(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "get_us": statistics.median(ordered) * 1e6,
        "get_p99_us": ordered[int(len(ordered) * 0.99)] * 1e6,
    }


@contextlib.contextmanager
def a_server(connect: str | None) -> Iterator[str]:
    """The given ensemble, or one server of our own in a temporary directory."""
    if connect is not None:
        yield connect
        return
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as directory,
        EmbeddedZooKeeper(Path(directory), sync=False) as server,
    ):
        yield server.connect


def runner(loop: str) -> Callable[..., dict[str, float]]:
    """The event loop that brokers use, or Python's own."""
    if loop == "uvloop":
        import uvloop

        return uvloop.run
    return asyncio.run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--gets", type=int, default=2_000, help="single gets for the latency")
    parser.add_argument("--connect", help="an empty ensemble; by default one server is started")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--no-history", action="store_true", help="do not append to bench/history.jsonl")
    options = parser.parse_args()
    nodes = state_paths(options.nodes)
    with a_server(options.connect) as connect:
        asyncio.run(prepare(connect, nodes))
        mine = runner(options.loop)(ours(connect, nodes, options.gets))
        theirs = kazoos(connect, nodes, options.gets)
    return show(options.nodes, mine, theirs, keep=not options.no_history)


def show(count: int, mine: dict[str, float], theirs: dict[str, float], *, keep: bool) -> int:
    """The table, and whether the bars were reached."""
    rows = [
        ("reads", "reads_s", "reads_s"),
        ("writes, kazoo's unfenced", "writes_s", "writes_s"),
        ("writes, both fenced", "writes_s", "fenced_writes_s"),
    ]
    print(f"{count:,} nodes{'ours/s':>32}{'kazoo/s':>12}{'ratio':>9}{'bar':>7}")
    is_reached = True
    for name, ours_key, theirs_key in rows:
        ratio, bar = theirs[theirs_key] / mine[ours_key], ZOOKEEPER[theirs_key]
        is_reached &= bar.is_met(ratio)
        print(
            f"{name:<28}{count / mine[ours_key]:>16,.0f}{count / theirs[theirs_key]:>12,.0f}"
            f"{ratio:>8.1f}x{bar.number:>6}x"
        )
    is_reached &= ZOOKEEPER["get_us"].is_met(mine["get_us"], theirs["get_us"])
    print(f"{'one get, µs (median)':<28}{mine['get_us']:>16,.0f}{theirs['get_us']:>12,.0f}")
    print(f"{'one get, µs (p99)':<28}{mine['get_p99_us']:>16,.0f}{theirs['get_p99_us']:>12,.0f}")
    print(f"{'session, ms':<28}{mine['connect_ms']:>16,.1f}")
    if keep:
        record("zookeeper", {"nodes": count, "ottla": _rounded(mine), "kazoo": _rounded(theirs)})
    if not is_reached:
        print("a bar was missed")
    return 0 if is_reached else 1


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in numbers.items()}


if __name__ == "__main__":
    sys.exit(main())
