"""Cuts large reads and writes into requests that the server takes and answers that we take.

A hundred thousand single requests cost seconds; some hundred requests of many operations cost a fraction of
one. Two limits bind: the server hangs up on requests over its ``jute.maxbuffer``, and answers over our own
limit are refused, so that both sizes are estimated before anything is sent.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ottla.zookeeper.ops import Check, Multi, MultiRead, ReadOp, WriteOp
from ottla.zookeeper.protocol import request_size

BATCH_REQUEST_BYTES_MAX: Final = 512 * 1024
"""Half of what a server takes by default: an ensemble's own messages wrap ours in more bytes."""
BATCH_REPLY_BYTES_MAX: Final = 1024 * 1024
READS_MAX: Final = 1_000
WRITES_MAX: Final = 400
"""Servers take two or three transactions of this size sooner than one of a thousand, and more evenly."""
STAT_BYTES: Final = 90
"""What a result takes besides a node's data."""


NODE_BYTES_SURE: Final = 1_000_000
"""A node that every ZooKeeper takes."""
LOST_MAX: Final = 3


def is_lost_for_good(node_bytes: int, lost: int) -> bool:
    """Whether a write that was lost so often must not be tried again.

    A server hangs up on what exceeds its ``jute.maxbuffer``, a mebibyte by default: trying again would take
    the session along, and with it everything that this broker has to do in ZooKeeper.
    """
    return node_bytes > NODE_BYTES_SURE and lost >= LOST_MAX


def plan_reads(ops: Iterable[ReadOp], *, data_bytes: int = 200) -> list[MultiRead]:
    """``MultiRead`` requests for all of these, in order; ``data_bytes`` is what one is expected to hold."""
    reply_bytes = STAT_BYTES + data_bytes
    reads_max = max(1, min(READS_MAX, BATCH_REPLY_BYTES_MAX // reply_bytes))
    return [MultiRead(tuple(chunk)) for chunk in _chunks(ops, reads_max, 0)]


def plan_fenced_writes(fence: Check, ops: Iterable[WriteOp]) -> list[Multi]:
    """``Multi`` requests for all of these, each of which does nothing once the fence's node has changed."""
    return [Multi((fence, *chunk)) for chunk in _chunks(ops, WRITES_MAX, request_size(fence))]


def _chunks(ops: Iterable[ReadOp | WriteOp], ops_max: int, start_bytes: int) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    size = start_bytes
    for op in ops:
        op_size = request_size(op)
        if chunk and (len(chunk) >= ops_max or size + op_size > BATCH_REQUEST_BYTES_MAX):
            yield chunk
            chunk, size = [], start_bytes
        chunk.append(op)
        size += op_size
    if chunk:
        yield chunk


def halves(read: MultiRead) -> tuple[MultiRead, MultiRead]:
    """What to ask instead when the answer was over the limit."""
    middle = len(read.ops) // 2
    return MultiRead(read.ops[:middle]), MultiRead(read.ops[middle:])
