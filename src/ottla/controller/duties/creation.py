"""Creating topics: CreateTopics is judged by Kafka's rules and written, and the topics get their leaders."""

from collections.abc import Iterator
from itertools import islice

from ottla.config.topic_config import check_topic_overrides, why_in_conflict
from ottla.controller.context import ControllerContext
from ottla.controller.duties import topics
from ottla.controller.effects import Answer, Breathe, NewTopic, ReadTopics, TopicsCreated, WriteNewTopics
from ottla.controller.events import (
    TopicCreationRequested,
    TopicFound,
    TopicsRead,
    TopicsWritten,
    TopicWanted,
)
from ottla.controller.placement import PARTITIONS_MAX, PlacedRow, assigned, placed_rows, why_unsound
from ottla.controller.turns import Turn, awaited
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId
from ottla.model.internal_topics import CLUSTER_METADATA_TOPIC
from ottla.model.partition_state import ReplicaAssignment
from ottla.model.topic_names import NamesAlike, why_illegal

ROWS_A_BREATH = 1_000

Placed = dict[int, ReplicaAssignment]


def on_requested(context: ControllerContext, event: TopicCreationRequested) -> Turn[None]:
    """Answered as soon as the topics stand in ZooKeeper: should this controller die before they have leaders,
    the next one elects them, and the host, which waits for them, can still tell the client of success."""
    judged = yield from _judge_all(context, event)
    new = {name: topic for name, topic in judged.items() if isinstance(topic, NewTopic)}
    if event.validate_only:
        new = {}
    if new:
        judged |= (yield from awaited(WriteNewTopics(new, event.cause), TopicsWritten)).refused
    context.outbox.append(Answer(event.token, TopicsCreated(judged)))
    made = {n: TopicFound(t.topic_id, t.partitions) for n, t in new.items() if judged[n] is t}
    yield from topics.add_topics(context, made, {}, event.cause)


def _judge_all(
    context: ControllerContext, event: TopicCreationRequested
) -> Turn[dict[str, NewTopic | Refusal]]:
    """One after the other; each new topic stands beside the next ones."""
    judged: dict[str, NewTopic | Refusal] = {}
    named = _named(event)
    there = yield from awaited(ReadTopics((), event.cause), TopicsRead)
    beside = NamesAlike(named, there.standing)
    room = PARTITIONS_MAX
    for name, wanted in named.items():
        if isinstance(wanted, Refusal):
            judged[name] = wanted
            continue
        judged[name] = outcome = yield from _judge(context, event, wanted, there, beside, room)
        if isinstance(outcome, NewTopic):
            room -= len(outcome.partitions)
            if not event.validate_only:
                beside.add(name)
        yield Breathe()
    return judged


def _named(event: TopicCreationRequested) -> dict[str, TopicWanted | Refusal]:
    """The topics by their names; refused are the metadata topic and names that come twice."""
    named: dict[str, TopicWanted | Refusal] = {}
    for topic in event.topics:
        if topic.name == CLUSTER_METADATA_TOPIC:
            why = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            named[topic.name] = Refusal(ErrorCode.INVALID_REQUEST, why)
        elif topic.name in named:
            why = "Found multiple entries for this topic."
            named[topic.name] = Refusal(ErrorCode.INVALID_REQUEST, why)
        else:
            named[topic.name] = topic
    return named


def _judge(
    context: ControllerContext,
    event: TopicCreationRequested,
    wanted: TopicWanted,
    there: TopicsRead,
    beside: NamesAlike,
    room: int,
) -> Turn[NewTopic | Refusal]:
    """One topic, in the order of Kafka's checks. ``beside`` are the topics it could collide with, ``room`` is
    left of the partitions that a request may ask for."""
    name = wanted.name
    if _is_shown(context, name):
        return _exists(name)
    nulls = [setting for setting, value in wanted.settings if value is None]
    if nulls:
        why = f"Null value not supported for topic configs: {','.join(nulls)}"
        return Refusal(ErrorCode.INVALID_CONFIG, why)
    settings = {setting: value for setting, value in wanted.settings if value is not None}
    if (wanted.partitions != -1 or wanted.replication_factor != -1) and wanted.by_hand:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set."
            " Both cannot be used at the same time.",
        )
    placed = (
        _placed_by_hand(wanted.by_hand, room)
        if wanted.by_hand
        else (yield from _place(context, event, wanted, room))
    )
    if isinstance(placed, Refusal):
        return placed
    if (illegal := why_illegal(name)) is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {illegal}")
    if (colliding := _why_colliding(name, beside)) is not None:
        return colliding
    problems = check_topic_overrides(settings)
    unsound = problems[0] if problems else why_in_conflict(event.log, settings)
    if unsound is not None:
        return Refusal(ErrorCode.INVALID_CONFIG, unsound)
    return why_taken(name, there, beside) or NewTopic(wanted.topic_id, placed, settings)


def _is_shown(context: ControllerContext, name: str) -> bool:
    """Whether brokers tell clients of a topic of that name."""
    topic = context.topics.get(name)
    if topic is None or topic.is_queued_for_deletion:
        return False
    return any(partition.state is not None for partition in topic.partitions.values())


def _exists(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def why_taken(name: str, there: TopicsRead, beside: NamesAlike) -> Refusal | None:
    """Whether a topic of that name stands in ZooKeeper, or one that collides with it, or one on its way out,
    with which it would be deleted."""
    if name in there.marked:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    if name in there.standing:
        return _exists(name)
    return _why_colliding(name, beside)


def _why_colliding(name: str, beside: NamesAlike) -> Refusal | None:
    """Whether one of the other topics differs from it in '.' and '_' alone."""
    colliding = beside.colliding(name)
    if not colliding:
        return None
    why = f"Topic '{name}' collides with existing topics: {', '.join(colliding)}"
    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, why)


def _why_no_room(partitions: int, room: int) -> Refusal | None:
    """What fits into one topic may yet be too much together with the others."""
    if not room < partitions <= PARTITIONS_MAX:
        return None
    why = f"Number of partitions of all topics of a request must not be larger than {PARTITIONS_MAX}."
    return Refusal(ErrorCode.INVALID_PARTITIONS, why)


def _placed_by_hand(by_hand: tuple[PlacedRow, ...], room: int) -> Placed | Refusal:
    """Of a partition named twice the last word counts."""
    if (full := _why_no_room(len(by_hand), room)) is not None:
        return full
    placed = dict(by_hand)
    if (why := why_unsound(placed, first_partition=0)) is not None:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    return assigned(sorted(placed.items()))


def _place(
    context: ControllerContext, event: TopicCreationRequested, wanted: TopicWanted, room: int
) -> Turn[Placed | Refusal]:
    defaults = event.defaults
    partitions = wanted.partitions if wanted.partitions != -1 else defaults.num_partitions
    factor = (
        wanted.replication_factor if wanted.replication_factor != -1 else defaults.default_replication_factor
    )
    if (full := _why_no_room(partitions, room)) is not None:
        return full
    count = max(1, len(context.brokers))
    start, shift = wanted.start % count, wanted.shift % count
    rows = placed_rows(context.racks, partitions, factor, start=start, shift=shift, rule=event.placement)
    return rows if isinstance(rows, Refusal) else (yield from placed_in_slices(rows))


def placed_in_slices(rows: Iterator[PlacedRow]) -> Turn[Placed]:
    """A placement, some rows at a time."""
    placed: Placed = {}
    shared: dict[tuple[BrokerId, ...], ReplicaAssignment] = {}
    while some := assigned(islice(rows, ROWS_A_BREATH), shared):
        placed |= some
        yield Breathe()
    return placed
