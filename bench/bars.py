"""The bars of the benchmarks: what each figure must reach; ``docs/proof.md`` shows both."""

from typing import NamedTuple


class Bar(NamedTuple):
    """A figure is at least (``>=``) or at most (``<=``) a number."""

    sign: str
    number: float
    of: str = "ratio"
    """The figure: the *ratio* to the peer, *ours* alone, or *ours* less the peer's (*excess*)."""

    def is_met(self, ours: float, peer: float = 1.0) -> bool:
        """Whether our figure, beside the peer's, reaches the bar."""
        figure = {"ratio": ours / peer, "ours": ours, "excess": ours - peer}[self.of]
        return figure >= self.number if self.sign == ">=" else figure <= self.number


BROKER = {
    "idle memory, MB": Bar("<=", 50, "ours"),
    "produce 1 KiB RF 1 acks=1, MB/s": Bar(">=", 1.1),
    "produce 1 KiB RF 3 acks=all, MB/s": Bar(">=", 1.5),
    "produce 16 KiB batches RF 3, MB/s": Bar(">=", 4.0),
    "produce 100 B RF 1, MB/s": Bar(">=", 1.0),
    "consume 1 KiB, MB/s": Bar(">=", 0.9),
    "latency acks=1 p50, us": Bar("<=", 0.5),
    "latency acks=1 p99, us": Bar("<=", 0.8),
    "latency acks=all p50, us": Bar("<=", 0.5),
    "latency acks=all p99, us": Bar("<=", 0.8),
    "memory after load, MB": Bar("<=", 100, "ours"),
}
QUICK = {
    "produce 1 KiB acks=1, user us a request": Bar("<=", 40, "ours"),
    "produce 16 KiB RF 3 acks=all, user ms a MB": Bar("<=", 7, "ours"),
    "memory after load, MB": Bar("<=", 60, "ours"),
}
GROUPS = {
    "stable group, s": Bar("<=", 1.0),
    "load, s": Bar("<=", 3.0),
    "longest silence during a load, ms": Bar("<=", 50, "ours"),
}
TRANSACTION_RATE = Bar(">=", 1.3)
TRANSACTION_TAIL = Bar("<=", 0.8)
TRANSACTION_LOAD = Bar("<=", 1.0)
CONTROLLER_LIFE = Bar("<=", 1 / 3)
CONTROLLER_MEMORY_MB = Bar("<=", 250, "ours")
CONTROLLER_ZNODES = Bar("<=", 0.1)
CONTROLLER_START = Bar("<=", 0.25)
ZOOKEEPER = {
    "reads_s": Bar(">=", 30),
    "writes_s": Bar(">=", 15),
    "fenced_writes_s": Bar(">=", 15),
    "get_us": Bar("<=", 1.0),
}
CRASH = {"median": Bar("<=", 0.5, "ours"), "worst": Bar("<=", 1.5, "ours")}
START = {
    "ottla up, 3 brokers: first record, s": Bar("<=", 1.0, "ours"),
    "ottla up, 3 brokers: memory, MB": Bar("<=", 150, "ours"),
    "ottla up, 1 broker: first record, s": Bar("<=", 0.5, "ours"),
    "fixture, 3 brokers, s": Bar("<=", 0.8, "ours"),
    "fixture, 1 broker, s": Bar("<=", 0.4, "ours"),
}
KEEPER = {
    "fenced writes, nodes/s": Bar(">=", 0.8),
    "bulk reads, nodes/s": Bar(">=", 0.5),
    "one get, us": Bar("<=", 1.0),
    "one set, us": Bar("<=", 1.0),
    "control": Bar("<=", 1.3),
}
EMBEDDED_START_S = Bar("<=", 3.0, "ours")
STORAGE = {
    "append 1 MiB": Bar("<=", 1.5, "ours"),
    "append 16 KiB": Bar("<=", 3.0, "ours"),
    "read, 1 MiB batches": Bar("<=", 1.3, "ours"),
    "read, 16 KiB batches": Bar("<=", 1.3, "ours"),
    "open seconds": Bar("<=", 1.0, "ours"),
    "idle bytes": Bar("<=", 4096, "ours"),
    "idle open files": Bar("<=", 0, "ours"),
    "10000 logs, create": Bar("<=", 4.0, "ours"),
    "10000 logs, close": Bar("<=", 3.0, "ours"),
    "10000 logs, open": Bar("<=", 5.0, "ours"),
    "10000 logs, memory": Bar("<=", 40.0, "ours"),
}
CODEC = {
    "encode_times_faster": Bar(">=", 5.0, "ours"),
    "decode_times_slower": Bar("<=", 3.0, "ours"),
}
SPARK = {
    "plain": Bar(">=", 2.0),
    "large": Bar(">=", 2.0),
    "lz4": Bar(">=", 2.0),
    "headers": Bar(">=", 2.0),
    "projection": Bar(">=", 4.0),
    "write": Bar(">=", 1.5),
    "trigger_ms": Bar("<=", 50, "excess"),
}

CONSOLE = {
    "overview, ms": Bar("<=", 50, "ours"),
    "timeline, ms": Bar("<=", 50, "ours"),
    "partitions, ms": Bar("<=", 50, "ours"),
    "partition, ms": Bar("<=", 50, "ours"),
    "may it leave, ms": Bar("<=", 50, "ours"),
    "balance, ms": Bar("<=", 50, "ours"),
    "map, ms": Bar("<=", 50, "ours"),
    "map's cells, ms": Bar("<=", 50, "ours"),
    "groups, ms": Bar("<=", 50, "ours"),
    "first visit compressed, kB": Bar("<=", 45, "ours"),
    "memory, MB": Bar("<=", 70, "ours"),
}
"""At 10,000 partitions and 2,000 groups; a page's bar is that of the server's answer."""
