"""What CreateTopics asks for, judged by Kafka's rules before anything is written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from ottla.broker import topic_names
from ottla.broker.zk_desk import Pause, Steps
from ottla.config.topic_config import check_topic_overrides, why_in_conflict
from ottla.controller.placement import (
    PARTITIONS_MAX,
    PlacedRow,
    Placement,
    PlacementRefused,
    PlacementRule,
    placed_rows,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicId
from ottla.wire.apis.create_topics import CreatableTopic

if TYPE_CHECKING:
    from ottla.broker.node import Node

INT16_MAX = 2**15 - 1
PARTITIONS_A_TURN = 5_000
"""How many partitions are placed before others get their turn."""


@dataclass(frozen=True, slots=True)
class TopicRefused:
    """Why a topic is not created."""

    error: ErrorCode
    why: str


@dataclass(slots=True)
class TopicPlan:
    """A topic that may be created."""

    name: str
    placement: Placement
    overrides: dict[str, str] = field(default_factory=dict)
    topic_id: TopicId | None = None

    @property
    def replication_factor(self) -> int:
        """As far as an answer can tell: who places by hand may name more brokers than there are."""
        return min(len(next(iter(self.placement.values()))), INT16_MAX)


def plan_topic(
    node: "Node", topic: CreatableTopic, beside: topic_names.NamesAlike, room: int = PARTITIONS_MAX
) -> Steps[TopicPlan | TopicRefused]:
    """Judge one entry of a CreateTopics request, in the order of Kafka's checks.

    ``beside`` are the topics it could collide with, ``room`` is left of the partitions a request may ask for.
    """
    name = topic.name
    if name in node.metadata.topics:
        return TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    overrides, problem = _overrides(topic)
    if problem is not None:
        return problem
    if (topic.num_partitions != -1 or topic.replication_factor != -1) and topic.assignments:
        return TopicRefused(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set."
            " Both cannot be used at the same time.",
        )
    placement = _placed_by_hand(topic, room) if topic.assignments else (yield from _place(node, topic, room))
    if isinstance(placement, TopicRefused):
        return placement
    problem = _why_no_name(name, beside)
    if problem is not None:
        return problem
    problems = check_topic_overrides(overrides)
    unsound = problems[0] if problems else why_in_conflict(node.config.log, overrides)
    if unsound is not None:
        return TopicRefused(ErrorCode.INVALID_CONFIG, unsound)
    return TopicPlan(name, placement, overrides)


def _why_no_name(name: str, beside: topic_names.NamesAlike) -> TopicRefused | None:
    illegal = topic_names.why_illegal(name)
    if illegal is not None:
        return TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {illegal}")
    return why_colliding(name, beside)


def why_colliding(name: str, beside: topic_names.NamesAlike) -> TopicRefused | None:
    """Whether one of the other topics differs from it in '.' and '_' alone."""
    colliding = beside.colliding(name)
    if not colliding:
        return None
    return TopicRefused(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
    )


def _overrides(topic: CreatableTopic) -> tuple[dict[str, str], TopicRefused | None]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        return {}, TopicRefused(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    return {config.name: config.value for config in topic.configs if config.value is not None}, None


def _why_no_room(partitions: int, room: int) -> TopicRefused | None:
    """What fits into one topic may yet be too much together with the others."""
    if not room < partitions <= PARTITIONS_MAX:
        return None
    why = f"Number of partitions of all topics of a request must not be larger than {PARTITIONS_MAX}."
    return TopicRefused(ErrorCode.INVALID_PARTITIONS, why)


def _placed_by_hand(topic: CreatableTopic, room: int) -> Placement | TopicRefused:
    """Of a partition named twice the last word counts."""
    if (full := _why_no_room(len(topic.assignments), room)) is not None:
        return full
    placed = {
        row.partition_index: tuple(BrokerId(broker) for broker in row.broker_ids) for row in topic.assignments
    }
    why = why_unsound(placed, first_partition=0)
    if why is not None:
        return TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    return dict(sorted(placed.items()))


def why_unsound(placed: Mapping[int, tuple[BrokerId, ...]], first_partition: int) -> str | None:
    """What is wrong with an assignment by hand; unknown brokers are not: they may yet come."""
    factors = {len(replicas) for replicas in placed.values()}
    if len(factors) > 1:
        return "All partitions should have the same number of replicas."
    for replicas in placed.values():
        if not replicas:
            return "Empty replica list in the replica assignment."
        if len(set(replicas)) < len(replicas):
            return f"Duplicate replica assignment found: {list(replicas)}"
        if min(replicas) < 0:
            return f"Invalid broker id in the replica assignment: {list(replicas)}"
    if sorted(placed) != list(range(first_partition, first_partition + len(placed))):
        return "Partitions should be a consecutive 0-based integer sequence"
    return None


def placement_rule(node: "Node") -> PlacementRule:
    """How this broker places replicas that nobody places by hand."""
    return PlacementRule(node.config.controller.ottla_replica_placement)


def _place(node: "Node", topic: CreatableTopic, room: int) -> Steps[Placement | TopicRefused]:
    defaults = node.config.topics
    partitions = topic.num_partitions if topic.num_partitions != -1 else defaults.num_partitions
    factor = (
        topic.replication_factor if topic.replication_factor != -1 else defaults.default_replication_factor
    )
    if (full := _why_no_room(partitions, room)) is not None:
        return full
    racks = {broker: node.metadata.brokers[broker].rack for broker in sorted(node.metadata.brokers)}
    count = max(1, len(racks))
    rows = placed_rows(
        racks,
        partitions,
        factor,
        start=node.random.randrange(count),
        shift=node.random.randrange(count),
        rule=placement_rule(node),
    )
    return (yield from placed_in_turns(rows))


def placed_in_turns(rows: Iterator[PlacedRow] | PlacementRefused) -> Steps[Placement | TopicRefused]:
    """A placement, a portion at a time; or the error that belongs to its refusal."""
    if isinstance(rows, PlacementRefused):
        return TopicRefused(rows.error, rows.why)
    placed: Placement = {}
    while portion := list(islice(rows, PARTITIONS_A_TURN)):
        placed.update(portion)
        if len(portion) == PARTITIONS_A_TURN:
            yield Pause(0)
    return placed
