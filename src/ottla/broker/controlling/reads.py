"""What the controller reads of the cluster. A node that cannot be understood is named and left out."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ottla.broker.controlling.steps import TermEnded, list_children, read_many
from ottla.broker.runtime.tasks import Steps, Together, persistently
from ottla.broker.topics.writer import list_topics
from ottla.controller.events import TopicFound, TopicsRead
from ottla.model.cluster import BrokerRegistration
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment
from ottla.model.topic_names import why_illegal
from ottla.znodes import paths
from ottla.znodes.codec import (
    INT32_MAX,
    MalformedZnode,
    TopicNode,
    decode_broker,
    decode_partition_state,
    decode_partitions,
    decode_reassignment,
    decode_topic,
)
from ottla.znodes.codec_config import decode_config, decode_log_dir_event
from ottla.znodes.codec_death import Death, decode_death
from ottla.zookeeper.ops import (
    Children,
    Data,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    ReadOp,
    Result,
    ZkCode,
)

log = logging.getLogger(__name__)

STATE_BYTES = 120
CONFIG_BYTES = 500
INT32_DIGITS = 10


@dataclass(slots=True)
class TopicNodes:
    """What the host must know of topic znodes to write them again: version, and keys we do not know."""

    versions: dict[str, int] = field(default_factory=dict)
    other: dict[str, dict[str, Any]] = field(default_factory=dict)
    have_partitions: set[str] = field(default_factory=set)
    """Topics whose ``partitions`` node is known to be there."""

    def remember(self, name: str, node: TopicNode, version: int) -> None:
        self.versions[name] = version
        if node.other:
            self.other[name] = node.other
        else:
            self.other.pop(name, None)

    def forget(self, name: str) -> None:
        self.versions.pop(name, None)
        self.other.pop(name, None)
        self.have_partitions.discard(name)


class ControllerReads:
    """Reads for one term. Equal tuples become one object: a hundred thousand partitions share a few."""

    def __init__(self, draw_topic_id: Callable[[], TopicId]) -> None:
        self.topics = TopicNodes()
        self._draw_topic_id = draw_topic_id
        self._tuples: dict[tuple[BrokerId, ...], tuple[BrokerId, ...]] = {}
        self._assignments: dict[ReplicaAssignment, ReplicaAssignment] = {}

    def list_brokers(self) -> Steps[list[BrokerId]]:
        """Who is registered, with a watch on the list."""
        names = yield from list_children(paths.BROKER_IDS, watch=True)
        return [BrokerId(int(name)) for name in names if _is_number(name)]

    def read_brokers(self, numbers: Sequence[BrokerId]) -> Steps[tuple[BrokerRegistration, ...]]:
        """These brokers' registrations, with a watch on each; those that are gone are left out."""
        answers = yield Together([GetData(paths.broker(number), watch=True) for number in numbers])
        brokers = []
        for number, answer in zip(numbers, answers, strict=True):
            if is_there(answer, paths.broker(number)):
                try:
                    brokers.append(decode_broker(number, answer.data, answer.stat.czxid))
                except MalformedZnode as malformed:
                    _refuse(paths.broker(number), malformed)
        return tuple(brokers)

    def read_topics(self, names: Iterable[str]) -> Steps[dict[str, TopicFound]]:
        """These topics' assignments, with a watch on each; those that are gone are left out."""
        asked = list(names)
        answers = yield Together([GetData(paths.topic(name), watch=True) for name in asked])
        found = {}
        for name, answer in zip(asked, answers, strict=True):
            topic = self._topic(name, answer)
            if topic is not None:
                found[name] = topic
        return found

    def read_standing(self, names: Iterable[str]) -> Steps[TopicsRead]:
        """Which topics there are now, and how those of these names look."""
        there = yield from list_topics()
        found: dict[str, TopicFound | Refusal] = {}
        for name in [each for each in names if each in there.standing]:
            answer = yield from persistently(GetData(paths.topic(name)))
            if isinstance(answer, Data):
                try:
                    node = decode_topic(name, answer.data)
                except MalformedZnode as malformed:
                    found[name] = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed))
                    continue
                topic_id = node.topic_id or self._draw_topic_id()
                found[name] = TopicFound(topic_id, node.partitions, node.topic_id is None)
        return TopicsRead(there.standing, there.marked, found)

    def _topic(self, name: str, answer: Result) -> TopicFound | None:
        if answer == Failed(ZkCode.MARSHALLING_ERROR):
            _refuse(paths.topic(name), "it is larger than what a client takes")
            return None
        if not is_there(answer, paths.topic(name)):
            return None
        illegal = why_illegal(name)
        if illegal is not None:
            _refuse(paths.topic(name), illegal)
            return None
        try:
            node = decode_topic(name, answer.data)
        except MalformedZnode as malformed:
            _refuse(paths.topic(name), malformed)
            return None
        self.topics.remember(name, node, answer.stat.version)
        partitions = {}
        sound: dict[int, ReplicaAssignment] = {}
        """Assignments that were looked at, by their identity: the decoder shares equal ones."""
        for index, assignment in sorted(node.partitions.items()):
            shared = sound.get(id(assignment))
            if shared is None or index < 0:
                why = _why_no_assignment(index, assignment)
                if why is not None:
                    _refuse(f"{paths.topic(name)} partition {index}", why)
                    continue
                shared = sound[id(assignment)] = self._shared(assignment)
            partitions[index] = shared
        if node.topic_id is None:
            return TopicFound(self._draw_topic_id(), partitions, id_is_new=True)
        return TopicFound(node.topic_id, partitions)

    def _shared(self, assignment: ReplicaAssignment) -> ReplicaAssignment:
        known = self._assignments.get(assignment)
        if known is None:
            known = self._assignments[assignment] = assignment
            self._tuples.setdefault(assignment.replicas, assignment.replicas)
        return known

    def read_states(self, partitions: Iterable[TopicPartition]) -> Steps[dict[TopicPartition, LeaderAndIsr]]:
        """The states that are there; those that cannot be read are named and left out."""
        asked = list(partitions)
        answers = yield from read_many([GetData(paths.partition_state(p)) for p in asked], STATE_BYTES)
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, answer in zip(asked, answers, strict=True):
            state = self.state(partition, answer)
            if state is not None:
                states[partition] = state
                self.topics.have_partitions.add(partition.topic)
        return states

    def state(self, partition: TopicPartition, answer: Result) -> LeaderAndIsr | None:
        """A partition state in an answer, or nothing."""
        if not isinstance(answer, Data):
            return None
        try:
            return decode_partition_state(answer.data, answer.stat.version, self._tuples)
        except MalformedZnode as malformed:
            _refuse(paths.partition_state(partition), malformed)
            return None


def is_there(answer: Result, path: str) -> TypeGuard[Data]:
    """Whether the node was shown; what a server puts off, or does not let us see, is not taken for gone."""
    if isinstance(answer, Data):
        return True
    if isinstance(answer, Failed) and answer.code is ZkCode.NO_NODE:
        return False
    raise TermEnded(f"{path} cannot be read: {answer}")


def list_deaths() -> Steps[set[BrokerId]]:
    """The brokers whose guards have told of a death."""
    listed = yield GetChildren(paths.DEATHS)
    names = listed.names if isinstance(listed, Children) else ()
    return {BrokerId(int(name)) for name in names if _is_number(name)}


def read_deaths(brokers: Iterable[BrokerId]) -> Steps[dict[BrokerId, Death]]:
    """How their processes ended, of those whose guards have told; whatever else is found says nothing."""
    asked = list(brokers)
    answers = (yield Together([GetData(paths.death(broker)) for broker in asked])) if asked else []
    deaths = {}
    for broker, answer in zip(asked, answers, strict=True):
        if isinstance(answer, Data):
            with suppress(MalformedZnode):
                deaths[broker] = decode_death(answer.data)
    return deaths


def read_if_there(path: str) -> Steps[bytes | None]:
    """The data of a node that comes and goes, with a watch on its coming and going."""
    there = yield Exists(path, watch=True)
    if isinstance(there, Found):
        answer = yield GetData(path)
        if isinstance(answer, Data):
            return answer.data if answer.data is not None else b""
    elif not (isinstance(there, Failed) and there.code is ZkCode.NO_NODE):
        raise TermEnded(f"{path} cannot be read: {there}")
    return None


def read_reassignments() -> Steps[dict[TopicPartition, tuple[BrokerId, ...]] | None]:
    """The old tool's reassignments; content that cannot be read counts as an empty list."""
    data = yield from read_if_there(paths.REASSIGN_PARTITIONS)
    if data is None:
        return None
    try:
        return decode_reassignment(data)
    except MalformedZnode as malformed:
        _refuse(paths.REASSIGN_PARTITIONS, malformed)
        return {}


def read_preferred_elections() -> Steps[tuple[TopicPartition, ...] | None]:
    """The old tool's preferred elections; content that cannot be read counts as an empty list."""
    data = yield from read_if_there(paths.PREFERRED_REPLICA_ELECTION)
    if data is None:
        return None
    try:
        return decode_partitions(data)
    except MalformedZnode as malformed:
        _refuse(paths.PREFERRED_REPLICA_ELECTION, malformed)
        return ()


def read_isr_notifications(names: tuple[str, ...]) -> Steps[list[TopicPartition]]:
    """The partitions that these notifications name."""
    answers = yield from read_many(_under(paths.ISR_CHANGE_NOTIFICATION, names))
    partitions: dict[TopicPartition, None] = {}
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, Data):
            try:
                partitions.update(dict.fromkeys(decode_partitions(answer.data)))
            except MalformedZnode as malformed:
                _refuse(f"{paths.ISR_CHANGE_NOTIFICATION}/{name}", malformed)
    return list(partitions)


def read_log_dir_events(names: tuple[str, ...]) -> Steps[frozenset[BrokerId]]:
    """The brokers that these notifications name."""
    answers = yield from read_many(_under(paths.LOG_DIR_EVENT_NOTIFICATION, names))
    brokers = set()
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, Data):
            try:
                brokers.add(decode_log_dir_event(answer.data))
            except MalformedZnode as malformed:
                _refuse(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{name}", malformed)
    return frozenset(brokers)


def read_unclean_topics(topics: Iterable[str], by_default: bool) -> Steps[frozenset[str]]:
    """Which of these topics allow unclean election: their own word, else the broker's."""
    asked = sorted(topics)
    paths_asked = [GetData(paths.config_entity("topics", topic)) for topic in asked]
    answers = yield from read_many(paths_asked, CONFIG_BYTES)
    allowed = set()
    for topic, answer in zip(asked, answers, strict=True):
        if _unclean_setting(topic, answer, by_default):
            allowed.add(topic)
    return frozenset(allowed)


def _unclean_setting(topic: str, answer: Result, by_default: bool) -> bool:
    if not isinstance(answer, Data):
        return by_default
    try:
        own = decode_config(answer.data).config.get("unclean.leader.election.enable")
    except MalformedZnode as malformed:
        _refuse(paths.config_entity("topics", topic), malformed)
        return False
    return by_default if own is None else own.strip().lower() == "true"


def _under(path: str, names: tuple[str, ...]) -> list[ReadOp]:
    return [GetData(f"{path}/{name}") for name in names]


def _is_number(name: str) -> bool:
    if name.isascii() and name.isdigit() and len(name) <= INT32_DIGITS and int(name) <= INT32_MAX:
        return True
    _refuse(f"{paths.BROKER_IDS}/{name}", "it is no broker id")
    return False


def _why_no_assignment(index: int, assignment: ReplicaAssignment) -> str | None:
    replicas = assignment.replicas
    if index < 0:
        return "a partition has no negative number"
    if not replicas:
        return "it has no replica"
    if len(set(replicas)) < len(replicas) or min(replicas) < 0:
        return f"{list(replicas)} are no replicas"
    return None


def _refuse(what: str, why: object) -> None:
    log.warning("a znode is left alone path=%s reason=%s", what, why)
