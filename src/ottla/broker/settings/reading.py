"""Entities read from ZooKeeper, many at a time."""

import logging
from collections.abc import Callable, Iterable

from ottla.broker.runtime.tasks import Pause, Steps, persistently
from ottla.zookeeper.batches import halves
from ottla.zookeeper.ops import Failed, MultiDone, MultiRead, ReadOp, ZkCode

log = logging.getLogger(__name__)

READS_AT_ONCE = 200
READ_AGAIN_MS = 1_000
"""How long to wait when ZooKeeper refuses to show an entity."""


def read_all(request: MultiRead, took: Callable[[ReadOp, object], None]) -> Steps[None]:
    """Each node's data, or that it is not there. Nothing else is taken for an answer: a log that is made
    without its topic's settings may lose what they keep."""
    done = yield from persistently(request)
    refused: Iterable[ReadOp] = request.ops
    if isinstance(done, MultiDone):
        answers = list(zip(request.ops, done.results, strict=True))
        refused = [read for read, result in answers if _is_refused(result)]
        for read, result in answers:
            if not _is_refused(result):
                took(read, result)
    elif len(request.ops) > 1:
        for half in halves(request):  # the answer was over the limit
            yield from read_all(half, took)
        return
    for read in refused:
        took(read, (yield from read_until_shown(read)))


def _is_refused(result: object) -> bool:
    return isinstance(result, Failed) and result.code is not ZkCode.NO_NODE


def read_until_shown(read: ReadOp) -> Steps[object]:
    """The node's data, or that it is not there, as soon as ZooKeeper shows it."""
    while True:
        result = yield from persistently(read)
        if not _is_refused(result):
            return result
        log.warning("settings cannot be read path=%s code=%s", read.path, result.code.name)
        yield Pause(READ_AGAIN_MS)
