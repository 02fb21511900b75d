"""How the controller works with ZooKeeper: steps that may go many at once, all fenced by its epoch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.broker.runtime.tasks import Steps, Together
from ottla.znodes import paths
from ottla.zookeeper.batches import halves, plan_reads
from ottla.zookeeper.ops import (
    Check,
    Children,
    Failed,
    GetChildren,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    ReadOp,
    ReadResult,
    Result,
    WriteOp,
    WriteResult,
    ZkCode,
)


class TermEnded(Exception):
    """The controller is one no longer: fenced by another, without a session, or unable to go on."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The version of ``/controller_epoch`` that this controller wrote: it changes when another is elected."""

    epoch: int
    version: int

    @property
    def check(self) -> Check:
        return Check(paths.CONTROLLER_EPOCH, self.version)


def read_many(ops: Iterable[ReadOp], data_bytes: int = 200) -> Steps[list[ReadResult]]:
    """Many reads in few requests, in order; an answer over the limit is asked for in halves."""
    plan = plan_reads(ops, data_bytes=data_bytes)
    if not plan:
        return []
    answers = yield Together(plan)
    results: list[ReadResult] = []
    for request, answer in zip(plan, answers, strict=True):
        results += yield from _read_results(request, answer)
    return results


def _read_results(request: MultiRead, answer: Result) -> Steps[list[ReadResult]]:
    if isinstance(answer, MultiDone):
        return list(answer.results)  # type: ignore[arg-type]  # a MultiRead gives read results
    if isinstance(answer, Failed) and answer.code is ZkCode.MARSHALLING_ERROR and len(request.ops) > 1:
        first, second = halves(request)
        answers = yield Together([first, second])
        left = yield from _read_results(first, answers[0])
        return left + (yield from _read_results(second, answers[1]))
    raise TermEnded(f"ZooKeeper cannot be read: {answer}")


def list_children(path: str, *, watch: bool = False) -> Steps[tuple[str, ...]]:
    """The names of a node's children; none when the node is not there."""
    result = yield GetChildren(path, watch=watch)
    return names_of(result, path)


def names_of(result: Result, path: str) -> tuple[str, ...]:
    """The children in a result, in the order of their names."""
    if isinstance(result, Children):
        return tuple(sorted(result.names))
    if isinstance(result, Failed) and result.code is ZkCode.NO_NODE:
        return ()
    raise TermEnded(f"the children of {path} cannot be read: {result}")


def write_fenced(fence: Fence, ops: Sequence[WriteOp]) -> Steps[tuple[WriteResult, ...] | MultiFailed | Lost]:
    """One transaction that only the present controller can make; a failure's index counts without it."""
    result = yield Multi((fence.check, *ops))
    return unfenced(result)


def unfenced(result: Result) -> tuple[WriteResult, ...] | MultiFailed | Lost:
    """A fenced transaction's result without its fence; ``TermEnded`` when it was the fence that failed."""
    if isinstance(result, MultiDone):
        return result.results[1:]  # type: ignore[return-value]  # a Multi gives write results
    if isinstance(result, Lost):
        return result
    if isinstance(result, MultiFailed) and result.index > 0:
        return MultiFailed(result.index - 1, result.code, result.results[1:])
    raise TermEnded(f"another controller was elected, or ZooKeeper refuses: {result}")
