"""Writes new topics to ZooKeeper: a controller those it was asked for, any broker those it needs itself."""

from collections.abc import Mapping
from random import Random

from ottla.broker.runtime.tasks import BREATH, Steps, Together, persistently
from ottla.controller.duties.creation import why_taken
from ottla.controller.effects import NewTopic
from ottla.controller.events import TopicsRead
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import TopicId, is_usable_topic_id
from ottla.model.topic_names import NamesAlike
from ottla.znodes import paths
from ottla.znodes.codec import TopicNode, encode_topic
from ottla.znodes.codec_config import ConfigNode, encode_config
from ottla.zookeeper.batches import is_lost_for_good
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Data,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    Result,
    SetData,
    ZkCode,
)

OVER_QUOTA = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
FENCED = Refusal(ErrorCode.NOT_CONTROLLER, "Another controller was elected.")


def list_topics() -> Steps[TopicsRead]:
    """The topics in ZooKeeper and those marked for deletion: there may be some that no metadata name yet."""
    standing = yield from persistently(GetChildren(paths.TOPICS))
    marked = yield from persistently(GetChildren(paths.DELETE_TOPICS))
    return TopicsRead(_names(standing), _names(marked))


def _names(listed: Result) -> frozenset[str]:
    return frozenset(listed.names) if isinstance(listed, Children) else frozenset()


def create_topics(topics: Mapping[str, NewTopic]) -> Steps[dict[str, Refusal]]:
    """Create those whose names are free; returns why the others were not created."""
    there = yield from list_topics()
    beside = NamesAlike(topics, there.standing)
    refused = {name: why for name in topics if (why := why_taken(name, there, beside)) is not None}
    free = {name: topic for name, topic in topics.items() if name not in refused}
    return refused | (yield from write_new_topics(free))


def write_new_topics(topics: Mapping[str, NewTopic], fence: Check | None = None) -> Steps[dict[str, Refusal]]:
    """Write each with its settings in one multi: of two who create it at once the second changes nothing.

    A controller's writes have its ``fence``: who asked it has perhaps turned to its successor, made the topic
    there and deleted it. Returns why some were not created.
    """
    writes = []
    for name, topic in topics.items():
        writes.append(_TopicWrite(name, topic, () if fence is None else (fence,)))
        yield BREATH
    refused = {}
    results = yield Together([write.multi for write in writes])
    for write, result in zip(writes, results, strict=True):
        why = yield from write.finish(result)
        if why is not None:
            refused[write.name] = why
    return refused


class _TopicWrite:
    """One new topic on its way to ZooKeeper."""

    def __init__(self, name: str, topic: NewTopic, guard: tuple[Check, ...]) -> None:
        self.name = name
        self._guard = guard
        self._path = paths.config_entity("topics", name)
        self._settings = encode_config(ConfigNode(dict(topic.settings)))
        self._topic = encode_topic(TopicNode(topic.topic_id, dict(topic.partitions)))
        self._configure: Create | SetData = Create(self._path, self._settings)

    @property
    def multi(self) -> Multi:
        return Multi((*self._guard, self._configure, Create(paths.topic(self.name), self._topic)))

    def finish(self, result: MultiDone | MultiFailed | Failed | Lost) -> Steps[Refusal | None]:
        """Read back what is in doubt, and try again where that helps."""
        lost = 0
        while not isinstance(result, MultiDone):
            if isinstance(result, MultiFailed) and result.index < len(self._guard):
                return FENCED
            found = yield from persistently(GetData(paths.topic(self.name)))
            if isinstance(found, Data) and found.data == self._topic:
                return None  # the answer to our own attempt was lost
            if isinstance(self._configure, Create) and self._has_settings(result):
                self._configure = SetData(self._path, self._settings, ANY_VERSION)  # of a topic that is gone
            elif not isinstance(result, Lost):
                return self._refused(result)
            lost += isinstance(result, Lost)
            if (refused := why_lost_for_good(len(self._topic) + len(self._settings), lost)) is not None:
                return refused
            result = yield self.multi
        return None

    def _has_settings(self, result: Result) -> bool:
        """Whether the write failed because settings of that name are there."""
        if not isinstance(result, MultiFailed):
            return False
        return (result.index, result.code) == (len(self._guard), ZkCode.NODE_EXISTS)

    def _refused(self, result: MultiFailed | Failed) -> Refusal:
        if result.code is ZkCode.NODE_EXISTS:
            return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{self.name}' already exists.")
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper refused to create it: {result.code.name}")


def why_lost_for_good(node_bytes: int, lost: int) -> Refusal | None:
    """The refusal of a topic whose node no server takes."""
    if not is_lost_for_good(node_bytes, lost):
        return None
    why = f"ZooKeeper hangs up on a node of {node_bytes} bytes: too many partitions for its jute.maxbuffer."
    return Refusal(ErrorCode.INVALID_PARTITIONS, why)


def draw_topic_id(random: Random) -> TopicId:
    """A new topic's id."""
    while True:
        drawn = TopicId(random.randbytes(16))
        if is_usable_topic_id(drawn):
            return drawn
