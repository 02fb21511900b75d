"""How the controller's effects become ZooKeeper transactions: few, fenced, and read back when in doubt."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from ottla.broker.controlling.reads import ControllerReads
from ottla.broker.controlling.steps import (
    Fence,
    TermEnded,
    list_children,
    names_of,
    read_many,
    unfenced,
    write_fenced,
)
from ottla.broker.runtime.tasks import Pause, Steps, Together
from ottla.broker.topics.writer import FENCED, why_lost_for_good, write_new_topics
from ottla.controller.effects import NewTopic
from ottla.controller.events import StatesWritten, TopicsWritten
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment
from ottla.znodes import paths
from ottla.znodes.codec import (
    MalformedZnode,
    TopicNode,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from ottla.zookeeper.batches import WRITES_MAX, plan_fenced_writes
from ottla.zookeeper.ops import (
    ANY_VERSION,
    Create,
    Data,
    DataSet,
    Delete,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiFailed,
    SetData,
    WriteOp,
    ZkCode,
)

log = logging.getLogger(__name__)

TRIES_MAX = 20
RETRY_MS = 50

States = Mapping[TopicPartition, LeaderAndIsr]


class ControllerWrites:
    """The writes of one term."""

    def __init__(self, fence: Fence, reads: ControllerReads) -> None:
        self._fence = fence
        self._reads = reads

    # ---- partition states

    def write_states(self, states: States) -> Steps[StatesWritten]:
        """Each state onto the version before it, or new; where another stands there, that is a conflict."""
        conflicts: dict[TopicPartition, LeaderAndIsr | None] = {}
        left: States = states
        missing: set[str] | None = None
        for _ in range(TRIES_MAX):
            chunks = list(_chunks(left))
            made: set[str] = set()
            results = yield Together([self._state_write(chunk, missing, made) for chunk in chunks])
            doubtful: dict[TopicPartition, LeaderAndIsr] = {}
            for chunk, result in zip(chunks, results, strict=True):
                if isinstance(unfenced(result), MultiFailed | Lost):
                    doubtful |= chunk
                else:
                    self._reads.topics.have_partitions.update(key.topic for key in chunk)
            if not doubtful:
                return StatesWritten(conflicts)
            left, missing = yield from self._look(doubtful, conflicts)
            if not left:
                return StatesWritten(conflicts)
        raise TermEnded(f"{len(left)} partition states cannot be written, such as {next(iter(left))}")

    def _state_write(self, states: States, missing: set[str] | None, made: set[str]) -> Multi:
        """``missing``: parents known not to be there, None before anybody looked; ``made``: in this round."""
        ops: list[WriteOp] = []
        for key, state in states.items():
            if state.partition_epoch > 0:
                ops.append(
                    SetData(
                        paths.partition_state(key), encode_partition_state(state), state.partition_epoch - 1
                    )
                )
                continue
            top = paths.topic_partitions(key.topic)
            is_there = (
                key.topic in self._reads.topics.have_partitions if missing is None else top not in missing
            )
            if not is_there and top not in made:
                made.add(top)
                ops.append(Create(top))
            own = paths.topic_partition(key)
            if missing is None or own in missing:
                ops.append(Create(own))
            ops.append(Create(paths.partition_state(key), encode_partition_state(state)))
        return Multi((self._fence.check, *ops))

    def _look(
        self, states: States, conflicts: dict[TopicPartition, LeaderAndIsr | None]
    ) -> Steps[tuple[States, set[str]]]:
        """Some writes failed or were lost: which are there, which are still to be made, which conflict?"""
        keys = list(states)
        answers = yield from read_many([GetData(paths.partition_state(key)) for key in keys])
        left: dict[TopicPartition, LeaderAndIsr] = {}
        for key, answer in zip(keys, answers, strict=True):
            wanted = states[key]
            there = self._reads.state(key, answer)
            if there == wanted:
                continue
            version = answer.stat.version if isinstance(answer, Data) else -1
            if version == wanted.partition_epoch - 1:
                left[key] = wanted
            else:
                conflicts[key] = there
        missing = yield from self._missing_parents(left, conflicts)
        return left, missing

    def _missing_parents(
        self, states: dict[TopicPartition, LeaderAndIsr], conflicts: dict[TopicPartition, LeaderAndIsr | None]
    ) -> Steps[set[str]]:
        new = [key for key, state in states.items() if state.partition_epoch == 0]
        topics = {paths.topic(key.topic): None for key in new}
        tops = {paths.topic_partitions(key.topic): None for key in new}
        parents = [*topics, *tops, *(paths.topic_partition(key) for key in new)]
        answers = yield from read_many([GetData(path) for path in parents])
        absent = {path for path, answer in zip(parents, answers, strict=True) if isinstance(answer, Failed)}
        for key in new:
            if paths.topic(key.topic) in absent:
                conflicts[key] = None
                del states[key]
        return absent

    # ---- topics

    def write_topics(
        self, topics: Mapping[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]]
    ) -> Steps[TopicsWritten]:
        """Whole topic nodes; partitions that somebody added meanwhile are kept."""
        missing: set[str] = set()
        refused: dict[str, Refusal] = {}
        left = dict(topics)
        lost = 0
        for _ in range(TRIES_MAX):
            names = list(left)
            writes = [self._topic_write(name, *left[name]) for name in names]
            plan = plan_fenced_writes(self._fence.check, writes)
            results = yield Together(plan)
            doubtful: list[str] = []
            position = 0
            for request, result in zip(plan, results, strict=True):
                chunk = names[position : position + len(request.ops) - 1]
                position += len(chunk)
                outcome = unfenced(result)
                if isinstance(outcome, MultiFailed | Lost):
                    doubtful += chunk
                else:
                    self._note_versions(chunk, outcome)
            lost += any(isinstance(result, Lost) for result in results)
            for name, write in zip(names, writes, strict=True):
                if name in doubtful and (why := why_lost_for_good(len(write.data or b""), lost)) is not None:
                    refused[name] = why
            left = {name: left[name] for name in doubtful if name not in refused}
            left = yield from self._look_at_topics(left, missing)
            if not left:
                return TopicsWritten(frozenset(missing), refused)
        why = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "ZooKeeper refused again and again.")
        return TopicsWritten(frozenset(missing), refused | dict.fromkeys(left, why))

    def write_new_topics(self, topics: Mapping[str, NewTopic]) -> Steps[TopicsWritten]:
        """New topic nodes with their settings."""
        refused = yield from write_new_topics(topics, self._fence.check)
        if FENCED in refused.values():
            raise TermEnded(f"topics cannot be created: {FENCED.why}")
        return TopicsWritten(refused=refused)

    def _topic_write(
        self, name: str, topic_id: TopicId, partitions: Mapping[int, ReplicaAssignment]
    ) -> SetData:
        known = self._reads.topics
        node = TopicNode(topic_id, dict(partitions), known.other.get(name, {}))
        return SetData(paths.topic(name), encode_topic(node), known.versions.get(name, ANY_VERSION))

    def _note_versions(self, names: Sequence[str], results: Sequence[object]) -> None:
        for name, result in zip(names, results, strict=True):
            if isinstance(result, DataSet):
                self._reads.topics.versions[name] = result.stat.version

    def _look_at_topics(
        self, topics: dict[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]], missing: set[str]
    ) -> Steps[dict[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]]]:
        names = list(topics)
        answers = yield from read_many([GetData(paths.topic(name)) for name in names], data_bytes=2_000)
        left: dict[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]] = {}
        for name, answer in zip(names, answers, strict=True):
            if not isinstance(answer, Data):
                missing.add(name)
                continue
            topic_id, partitions = topics[name]
            found: Mapping[int, ReplicaAssignment] = {}
            try:
                node = decode_topic(name, answer.data)
                found = node.partitions
                self._reads.topics.remember(name, node, answer.stat.version)
            except MalformedZnode as malformed:
                log.warning("a topic is written over topic=%s reason=%s", name, malformed)
                self._reads.topics.versions[name] = answer.stat.version
            left[name] = (topic_id, {**found, **partitions})
        return left

    def remove_topics(self, topics: Sequence[str]) -> Steps[None]:
        """Delete each topic's subtree bottom-up, then topic, config and deletion marker in one multi.

        Nobody creates a topic while its marker exists. Once it is gone, the name belongs to another topic.
        """
        marked: set[str] = set()
        for attempt in range(TRIES_MAX):
            below, ends = yield from self._removal(topics, marked)
            if not ends:
                for name in topics:
                    self._reads.topics.forget(name)
                return
            if attempt:
                yield Pause(RETRY_MS)
            check = self._fence.check
            plan = plan_fenced_writes(check, below) + [Multi((check, *ops)) for ops in _whole(ends)]
            for result in (yield Together(plan)):
                unfenced(result)
        raise TermEnded(f"topics cannot be removed, such as {topics[0]}")

    def _removal(
        self, topics: Sequence[str], marked: set[str]
    ) -> Steps[tuple[list[WriteOp], list[list[WriteOp]]]]:
        """The deletions below these topics, and for each topic those that end it."""
        asked = [p for n in topics for p in (paths.config_entity("topics", n), paths.delete_topic(n))]
        standing = {op.path: op for op in (yield from self._those_there(asked))}
        below: list[WriteOp] = []
        ends: list[list[WriteOp]] = []
        for name in topics:
            mark, settings = paths.delete_topic(name), paths.config_entity("topics", name)
            if mark in standing:
                marked.add(name)
            elif name in marked:
                continue
            tree = yield from self._tree(paths.topic(name))
            below += tree[:-1]
            end = [*tree[-1:], *(standing[path] for path in (settings, mark) if path in standing)]
            if end:
                ends.append(end)
        return below, ends

    def _tree(self, path: str) -> Steps[list[WriteOp]]:
        """The deletions of a node with all below it, the lowest first."""
        levels = [[path]]
        while levels[-1]:
            answers = yield from read_many([GetChildren(each) for each in levels[-1]], data_bytes=100)
            names = [names_of(answer, each) for each, answer in zip(levels[-1], answers, strict=True)]
            if len(levels) == 1 and isinstance(answers[0], Failed):
                return []
            levels.append(
                [f"{each}/{name}" for each, below in zip(levels[-1], names, strict=True) for name in below]
            )
        return [Delete(each, ANY_VERSION) for level in reversed(levels) for each in level]

    def _those_there(self, nodes: Iterable[str]) -> Steps[list[Delete]]:
        asked = list(nodes)
        answers = yield from read_many([GetData(path) for path in asked])
        return [
            Delete(path, ANY_VERSION)
            for path, answer in zip(asked, answers, strict=True)
            if isinstance(answer, Data)
        ]

    # ---- small nodes that come and go

    def clear(self, nodes: Sequence[str]) -> Steps[None]:
        """Remove nodes that were dealt with; those that are gone already do not matter."""
        for _ in range(TRIES_MAX):
            ops = yield from self._those_there(nodes)
            results = (yield Together(plan_fenced_writes(self._fence.check, ops))) if ops else []
            if Lost not in [type(unfenced(result)) for result in results]:
                return
        raise TermEnded(f"nodes cannot be removed, such as {nodes[0]}")

    def clear_children(self, path: str) -> Steps[None]:
        """Remove all notifications under a node, and watch for the next."""
        names = yield from list_children(path, watch=True)
        yield from self.clear([f"{path}/{name}" for name in names])

    def put(self, path: str, data: bytes) -> Steps[None]:
        """Replace a node's data if it is there."""
        for _ in range(TRIES_MAX):
            result = yield from write_fenced(self._fence, [SetData(path, data, ANY_VERSION)])
            if isinstance(result, MultiFailed) and result.code is not ZkCode.NO_NODE:
                raise TermEnded(f"{path} cannot be written: {result.code.name}")
            if not isinstance(result, Lost):
                return
        raise TermEnded(f"{path} cannot be written: the answers are lost")


def _chunks(states: States) -> Iterable[dict[TopicPartition, LeaderAndIsr]]:
    """Chunks of one transaction each: a new state takes up to three operations, another takes one."""
    chunk: dict[TopicPartition, LeaderAndIsr] = {}
    room = WRITES_MAX
    for key, state in states.items():
        chunk[key] = state
        room -= 1 if state.partition_epoch else 2
        if room <= 0:
            yield chunk
            chunk, room = {}, WRITES_MAX
    if chunk:
        yield chunk


def _whole(groups: Iterable[list[WriteOp]]) -> Iterable[list[WriteOp]]:
    """Chunks of one transaction each; a group is never split."""
    chunk: list[WriteOp] = []
    for group in groups:
        if chunk and len(chunk) + len(group) > WRITES_MAX:
            yield chunk
            chunk = []
        chunk += group
    if chunk:
        yield chunk
