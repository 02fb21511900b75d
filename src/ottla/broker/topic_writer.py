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
    Created,
    Data,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    Op,
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
    """The settings first, so that the controller finds them when it finds the topic.

    ``beside`` are the topics that stand there already, as ``topics_beside`` gives them. A controller's writes
    have its ``fence``: who asked it has perhaps turned to its successor, made the topic there and deleted it.
    """
    name = plan.name
    taken = yield from why_taken(name, beside)
    if taken is not None:
        return taken
    config_path = paths.config_entity("topics", name)
    settings = encode_config(ConfigNode(plan.overrides))
    configured = yield from fenced(fence, SetData(config_path, settings, ANY_VERSION))
    if isinstance(configured, Failed) and configured.code is ZkCode.NO_NODE:
        yield from fenced(fence, Create(config_path, settings))
    plan.topic_id = _draw_topic_id(node)
    shared = {replicas: ReplicaAssignment(replicas) for replicas in set(plan.placement.values())}
    assignments = {index: shared[replicas] for index, replicas in plan.placement.items()}
    encoded = encode_topic(TopicNode(plan.topic_id, assignments))
    lost = 0
    while True:
        result = yield from fenced(fence, Create(paths.topic(name), encoded), is_repeated=False)
        if isinstance(result, Created):
            return plan
        if isinstance(result, Deposed):
            return TopicRefused(ErrorCode.NOT_CONTROLLER, "Another controller was elected.")
        found = yield from persistently(GetData(paths.topic(name)))
        if isinstance(found, Data) and found.data == encoded:
            return plan  # the answer to our own attempt was lost
        if isinstance(result, Failed):
            return _refused(name, result)
        lost += 1
        if (refused := why_lost_for_good(len(encoded), lost)) is not None:
            return refused


@dataclass(frozen=True, slots=True)
class Deposed:
    """A write that did not take, for another controller has been elected."""


def fenced(
    fence: "Fence | None", op: Create | SetData, *, is_repeated: bool = True
) -> Steps[WriteResult | Failed | Lost | Deposed]:
    """One write, in one transaction with the fence where there is one; repeated until it is answered."""
    asked: Op = op if fence is None else Multi((fence.check, op))
    result = (yield from persistently(asked)) if is_repeated else (yield asked)
    if isinstance(result, MultiDone):
        return cast(WriteResult, result.results[1])
    if isinstance(result, MultiFailed):
        return Deposed() if result.index == 0 else Failed(result.code)
    return cast(WriteResult | Failed | Lost, result)


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


def _refused(name: str, result: Failed) -> TopicRefused:
    if result.code is ZkCode.NODE_EXISTS:
        return TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper refused to create it: {result.code.name}")


def _draw_topic_id(node: "Node") -> TopicId:
    while True:
        drawn = TopicId(node.random.randbytes(16))
        if is_usable_topic_id(drawn):
            return drawn
