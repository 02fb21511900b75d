"""What clients ask a controller, sound and odd, in an order in which later questions build on earlier ones.

Not asked, because Apache dies of it or never answers while Ottla refuses: a topic placed by hand with
negative partitions or brokers or without any, a topic without a name that shall grow, one that shall have
-2,147,483,648 partitions (Apache then makes as many as memory holds), one that is deleted by neither name nor
id, settings of the topic ``..``, replicas by the thousand.
"""

from __future__ import annotations

from typing import Any

from ottla.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Question = tuple[Any, int]
MAX_I32, MIN_I32 = 2**31 - 1, -(2**31)
WAIT_MS = 25_000
TOPIC, BROKER = 2, 4
SET, APPEND = 0, 2

NAMES = (
    ".",
    "..",
    "",
    "a" * 249,
    "a" * 250,
    "a b",
    "ünlaut",
    "a/b",
    "a:b",
    "a\nb",
    "a\0b",
    "a.b",
    "a_b",
    "a.b",
)
NAMES += (
    "x_y.z",
    "x.y.z",
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "-",
    "_",
    "...",
)


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    placed: tuple[tuple[int, tuple[int, ...]], ...] = (),
    settings: tuple[tuple[str, str | None], ...] = (),
) -> CreatableTopic:
    by_hand = [CreatableReplicaAssignment(*row) for row in placed]
    configs = [CreatableTopicConfig(*row) for row in settings]
    return CreatableTopic(name, -1 if placed else partitions, -1 if placed else factor, by_hand, configs)


def create(
    *topics: CreatableTopic, version: int = 7, wait_ms: int = WAIT_MS, only_check: bool = False
) -> Question:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=wait_ms, validate_only=only_check), version


def grow(
    name: str, count: int, *placed: tuple[int, ...], wait_ms: int = WAIT_MS, only_check: bool = False
) -> Question:
    by_hand = [CreatePartitionsAssignment(row) for row in placed] or None
    topics = [CreatePartitionsTopic(name, count, by_hand)]
    return CreatePartitionsRequest(topics=topics, timeout_ms=wait_ms, validate_only=only_check), 3


def delete(*names: str, wait_ms: int = WAIT_MS, topic_id: bytes | None = None) -> Question:
    topics = [DeleteTopicState(name=name) for name in names]
    if topic_id is not None:
        topics.append(DeleteTopicState(name=None, topic_id=topic_id))
    return DeleteTopicsRequest(topics=topics, timeout_ms=wait_ms), 6


def elect(
    rows: tuple[tuple[str, tuple[int, ...]], ...] | None,
    kind: int = 0,
    wait_ms: int = WAIT_MS,
    version: int = 2,
) -> Question:
    partitions = None if rows is None else [TopicPartitions(*row) for row in rows]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=wait_ms)
    return request, version


def move(*rows: tuple[str, int, tuple[int, ...] | None]) -> Question:
    topics = [ReassignableTopic(name, [ReassignablePartition(index, to)]) for name, index, to in rows]
    return AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=WAIT_MS), 0


def alter(kind: int, name: str, *rows: tuple[str, int, str | None]) -> Question:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*row) for row in rows])
    return IncrementalAlterConfigsRequest(resources=[resource]), 1


def _creations() -> list[Question]:
    placed = [
        ((0, (0,)), (1, (0,))),
        ((0, (0,)), (0, (0,))),
        ((1, (0,)),),
        ((0, (0, 0)),),
        ((0, (0,)), (1, (0, 1))),
    ]
    settings: list[tuple[tuple[str, str | None], ...]] = [
        (("retention.ms", "1"), ("retention.ms", "2")),
        (("retention.ms", None),),
        (("nope", "1"),),
        (("", "1"),),
        (("retention.ms", "9" * 30),),
    ]
    counts = ((0, 1), (-2, 1), (MIN_I32, 1), (-1, -1), (1, 0), (1, 2), (1, -2), (1, 32_767))
    return [
        *(create(topic(name)) for name in NAMES),
        create(),
        create(topic("twice"), topic("twice"), topic("once")),
        create(topic("c.d"), topic("c_d")),
        create(topic("e.f"), topic("e_f"), topic("g"), topic("g"), only_check=True),
        *(create(topic(f"counted-{n}", *given)) for n, given in enumerate(counts)),
        *(create(topic(f"placed-{n}", placed=given)) for n, given in enumerate(placed)),
        create(CreatableTopic("both", 2, -1, [CreatableReplicaAssignment(0, (0,))], [])),
        create(topic("far", placed=((0, (7,)),)), only_check=True),
        *(create(topic(f"set-{n}", settings=given)) for n, given in enumerate(settings)),
        create(topic("..", 0, 0, settings=(("nope", "1"),)), topic("once", settings=(("nope", "1"),))),
        *(create(topic(f"in-{ms}"), wait_ms=ms) for ms in (0, -1, MAX_I32, MIN_I32)),
        *(create(topic(f"version-{v}", -1, -1), version=v) for v in (0, 3, 4, 5)),
    ]


def _growths() -> list[Question]:
    name = "placed-0"
    twice = [CreatePartitionsTopic(name, 8, None), CreatePartitionsTopic(name, 9, None)]
    return [
        *(grow(other, 3) for other in ("nobody", "a b", "__cluster_metadata")),
        *(grow(name, count) for count in (1, 2, -1, 0, 3)),
        grow(name, 4, wait_ms=0),
        grow(name, 5, wait_ms=-1),
        grow(name, 9, only_check=True),
        grow(name, 9, wait_ms=0, only_check=True),
        grow(name, 6, (0,)),
        *(grow(name, 7, *placed) for placed in (((0,), (0,)), ((9,),), ((0, 0),), ((),), ((-1,),))),
        (CreatePartitionsRequest(topics=twice, timeout_ms=WAIT_MS), 3),
        (CreatePartitionsRequest(topics=[], timeout_ms=WAIT_MS), 3),
    ]


def _changes() -> list[Question]:
    once = ("once", (0,))
    resource = AlterConfigsResource(TOPIC, "once", [AlterableConfig("retention.ms", SET, "5")])
    return [
        elect((once,)),
        elect((("once", (0, 0)), once)),
        elect((("nobody", (0,)), ("once", (99, -1)))),
        *(elect(None, kind) for kind in (0, 1)),
        *(elect((once,), kind) for kind in (1, 2, -1)),
        *(elect((once,), wait_ms=ms) for ms in (0, MAX_I32)),
        elect(()),
        elect((("once", ()),)),
        elect((once,), version=0),
        move(("once", 0, (0,)), ("once", 0, (9,))),
        move(("once", 0, (9,)), ("once", 0, (0,))),
        *(move(("once", 0, to)) for to in ((0,), (9,), (0, 0), (-1,), (), None)),
        move(("nobody", 0, (0,)), ("once", 77, (0,)), ("once", -1, (0,)), ("nobody", 1, None)),
        move(),
        (ListPartitionReassignmentsRequest(topics=None), 0),
        (ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("nobody", (0, 0))]), 0),
        (IncrementalAlterConfigsRequest(resources=[resource, resource]), 1),
        alter(TOPIC, "once", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
        alter(TOPIC, "once", ("cleanup.policy", APPEND, "delete")),
        alter(TOPIC, "once", ("retention.ms", APPEND, "5")),
        alter(TOPIC, "once", ("retention.ms", 9, "5")),
        alter(TOPIC, "once"),
        *(alter(TOPIC, name, ("retention.ms", SET, "5")) for name in ("", "a b", "nobody")),
        *(alter(BROKER, name, ("log.cleaner.threads", SET, "1")) for name in ("00", "+0", "99999999999")),
        (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("f", 1)] * 2), 1),
    ]


def _deletions() -> list[Question]:
    both = DeleteTopicState(name="c.d", topic_id=b"x" * 16)
    return [
        *(delete(name) for name in ("nobody", "a b", "", "__cluster_metadata")),
        delete(),
        delete("version-0"),
        (DeleteTopicsRequest(topic_names=("version-3", "version-3"), timeout_ms=WAIT_MS), 1),
        delete("version-4", wait_ms=0),
        delete("version-5", wait_ms=-1),
        delete(topic_id=b"x" * 16),
        (DeleteTopicsRequest(topics=[both], timeout_ms=WAIT_MS), 6),
        delete("c.d", "nobody", topic_id=b"y" * 16),
    ]


QUESTIONS: list[Question] = [*_creations(), *_growths(), *_changes(), *_deletions()]
