"""Writes a new topic to ZooKeeper; the controller, which watches, then gives its partitions leaders."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ottla.broker.topic_names import NamesAlike, may_collide
from ottla.broker.topic_requests import TopicPlan, TopicRefused, why_colliding
from ottla.broker.zk_desk import Steps, persistently
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicId, is_usable_topic_id
from ottla.model.partition_state import ReplicaAssignment
from ottla.zookeeper import paths
from ottla.zookeeper.codec import TopicNode, encode_topic
from ottla.zookeeper.codec_config import ConfigNode, encode_config
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Children,
    Create,
    Data,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    SetData,
    WriteResult,
    ZkCode,
)

if TYPE_CHECKING:
    from ottla.broker.controller_steps import Fence
    from ottla.broker.node import Node


NODE_BYTES_SURE = 1_000_000
"""A node that every ZooKeeper takes."""
LOST_MAX = 3
_NOBODY = NamesAlike()


def write_topic(
    node: "Node", plan: TopicPlan, beside: NamesAlike = _NOBODY, fence: "Fence | None" = None
) -> Steps[TopicPlan | TopicRefused]:
    """The topic and its settings at one stroke: of two who create it at once the second changes nothing.

    ``beside`` are the topics that stand there already, as ``topics_beside`` gives them. A controller's writes
    have its ``fence``: who asked it has perhaps turned to its successor, made the topic there and deleted it.
    """
    name = plan.name
    taken = yield from why_taken(name, beside)
    if taken is not None:
        return taken
    plan.topic_id = _draw_topic_id(node)
    shared = {replicas: ReplicaAssignment(replicas) for replicas in set(plan.placement.values())}
    assignments = {index: shared[replicas] for index, replicas in plan.placement.items()}
    encoded = encode_topic(TopicNode(plan.topic_id, assignments))
    path, settings = paths.config_entity("topics", name), encode_config(ConfigNode(plan.overrides))
    configure: Create | SetData = Create(path, settings)
    guard = () if fence is None else (fence.check,)
    lost = 0
    while True:
        result = yield Multi((*guard, configure, Create(paths.topic(name), encoded)))
        if isinstance(result, MultiDone):
            return plan
        if isinstance(result, MultiFailed) and result.index < len(guard):
            return TopicRefused(ErrorCode.NOT_CONTROLLER, "Another controller was elected.")
        found = yield from persistently(GetData(paths.topic(name)))
        if isinstance(found, Data) and found.data == encoded:
            return plan  # the answer to our own attempt was lost
        if isinstance(configure, Create) and _are_there(result, len(guard)):
            configure = SetData(path, settings, ANY_VERSION)  # of a topic that is gone
        elif not isinstance(result, Lost):
            return _refused(name, result)
        lost += isinstance(result, Lost)
        if (refused := why_lost_for_good(len(encoded) + len(settings), lost)) is not None:
            return refused


def _are_there(result: object, index: int) -> bool:
    """Whether that write failed because its node is there."""
    return isinstance(result, MultiFailed) and (result.index, result.code) == (index, ZkCode.NODE_EXISTS)


@dataclass(frozen=True, slots=True)
class Deposed:
    """A write that did not take, for another controller has been elected."""


def fenced(fence: "Fence", op: Create) -> Steps[WriteResult | Failed | Deposed]:
    """One write in one transaction with the fence, repeated until it is answered."""
    result: MultiDone | MultiFailed | Failed = yield from persistently(Multi((fence.check, op)))
    if isinstance(result, MultiDone):
        return cast(WriteResult, result.results[1])
    if isinstance(result, MultiFailed):
        return Deposed() if result.index == 0 else Failed(result.code)
    return result


def topics_beside(names: Collection[str]) -> Steps[NamesAlike]:
    """The topics in ZooKeeper that names could collide with: there may be some that no metadata name yet.

    Nobody asks when none of the names can collide with another.
    """
    if not any(map(may_collide, names)):
        return _NOBODY
    listed = yield from persistently(GetChildren(paths.TOPICS))
    return NamesAlike(names, listed.names if isinstance(listed, Children) else ())


def why_taken(name: str, beside: NamesAlike) -> Steps[TopicRefused | None]:
    """Whether a topic of that name stands in ZooKeeper, or one that collides with it, or one on its way out,
    with which it would be deleted.

    The mark is looked for after the topic: it goes last.
    """
    topic = yield from persistently(Exists(paths.topic(name)))
    mark = yield from persistently(Exists(paths.delete_topic(name)))
    if not isinstance(mark, Failed):
        return TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    if not isinstance(topic, Failed):
        return TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    return why_colliding(name, beside)


def is_lost_for_good(node_bytes: int, lost: int) -> bool:
    """A server hangs up on what exceeds its ``jute.maxbuffer``, a mebibyte by default: trying again would
    take the session along, and with it everything that this broker has to do in ZooKeeper."""
    return node_bytes > NODE_BYTES_SURE and lost >= LOST_MAX


def why_lost_for_good(node_bytes: int, lost: int) -> TopicRefused | None:
    """The refusal of a topic whose node no server takes."""
    if not is_lost_for_good(node_bytes, lost):
        return None
    why = f"ZooKeeper hangs up on a node of {node_bytes} bytes: too many partitions for its jute.maxbuffer."
    return TopicRefused(ErrorCode.INVALID_PARTITIONS, why)


def _refused(name: str, result: Failed | MultiFailed) -> TopicRefused:
    if result.code is ZkCode.NODE_EXISTS:
        return TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper refused to create it: {result.code.name}")


def _draw_topic_id(node: "Node") -> TopicId:
    while True:
        drawn = TopicId(node.random.randbytes(16))
        if is_usable_topic_id(drawn):
            return drawn
