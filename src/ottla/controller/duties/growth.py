"""Adding partitions: CreatePartitions is judged by Kafka's rules and written, and they get their leaders."""

from collections import Counter

from ottla.controller.context import ControllerContext
from ottla.controller.duties import topics
from ottla.controller.duties.creation import Placed, placed_in_slices
from ottla.controller.effects import Answer, Breathe, PartitionsAdded, ReadTopics, WriteTopics
from ottla.controller.events import (
    PartitionsRequested,
    PartitionsWanted,
    TopicFound,
    TopicsRead,
    TopicsWritten,
)
from ottla.controller.placement import (
    PlacementRule,
    assigned,
    placed_rows,
    start_for_added_partitions,
    why_unsound,
)
from ottla.controller.turns import Turn, awaited
from ottla.model.errors import GRANTED, ErrorCode, Refusal
from ottla.model.ids import TopicId


def on_requested(context: ControllerContext, event: PartitionsRequested) -> Turn[None]:
    """Answered as soon as the assignments stand in ZooKeeper, as a topic's creation is."""
    named = Counter(wanted.name for wanted in event.topics)
    there = yield from awaited(ReadTopics(tuple(named), event.cause), TopicsRead)
    results: dict[str, Refusal] = {}
    added: dict[str, tuple[TopicFound, Placed]] = {}
    for wanted in event.topics:
        name = wanted.name
        if named[name] > 1:
            results[name] = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            continue
        plan = yield from _judge(context, event.placement, wanted, there)
        results[name] = plan if isinstance(plan, Refusal) else GRANTED
        if not isinstance(plan, Refusal) and not event.validate_only:
            added[name] = plan
        yield Breathe()
    grown = {n: (_id(context, n, f), {**f.partitions, **placed}) for n, (f, placed) in added.items()}
    if grown:
        outcome = yield from awaited(WriteTopics(grown, event.cause), TopicsWritten)
        results |= {**outcome.refused, **{name: _unknown(name) for name in outcome.missing}}
    context.outbox.append(Answer(event.token, PartitionsAdded(results)))
    fresh = [
        context.add_partition(topic, index, assignment)
        for name, (_, placed) in added.items()
        if results[name] == GRANTED and (topic := context.topics.get(name)) and topic.id == grown[name][0]
        for index, assignment in placed.items()
        if index not in topic.partitions
    ]
    yield from topics.bring_online(context, fresh, event.cause)


def _id(context: ControllerContext, name: str, found: TopicFound) -> TopicId:
    """Where somebody who does not know topic ids has rewritten the znode, the id stays what it was."""
    return context.topics[name].id if found.id_is_new and name in context.topics else found.topic_id


def _unknown(name: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _judge(
    context: ControllerContext, rule: PlacementRule, wanted: PartitionsWanted, there: TopicsRead
) -> Turn[tuple[TopicFound, Placed] | Refusal]:
    """One topic, in the order of Kafka's checks: as it stands, and its new partitions."""
    name, found = wanted.name, there.found.get(wanted.name)
    if found is None:
        return _unknown(name)
    if name in there.marked:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    if isinstance(found, Refusal):
        return found
    refusal = _why_not(wanted, found)
    if refusal is not None:
        return refusal
    if wanted.by_hand is not None:
        placed = _placed_by_hand(context, wanted, found)
    else:
        placed = yield from _place(context, rule, wanted, found)
    return placed if isinstance(placed, Refusal) else (found, placed)


def _why_not(wanted: PartitionsWanted, found: TopicFound) -> Refusal | None:
    name, partitions, have = wanted.name, found.partitions, len(found.partitions)
    if any(assignment.is_being_reassigned for assignment in partitions.values()):
        why = f"A partition reassignment is in progress for the topic '{name}'."
        return Refusal(ErrorCode.REASSIGNMENT_IN_PROGRESS, why)
    if not have:
        return _unknown(name)
    if wanted.partitions < have:
        why = (
            f"Topic currently has {have} partitions, which is higher than the requested {wanted.partitions}."
        )
        return Refusal(ErrorCode.INVALID_PARTITIONS, why)
    if wanted.partitions == have:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partitions.")
    if min(partitions) != 0 or max(partitions) != have - 1 or not partitions[0].replicas:
        why = f"Partitions or replicas are missing in the assignment of the topic '{name}'."
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    return None


def _placed_by_hand(
    context: ControllerContext, wanted: PartitionsWanted, found: TopicFound
) -> Placed | Refusal:
    have, factor = len(found.partitions), len(found.partitions[0].replicas)
    placed = dict(enumerate(wanted.by_hand or (), have))
    unknown = sorted({b for replicas in placed.values() for b in replicas} - context.brokers.keys())
    why: str | None = None
    if unknown:
        listed = ", ".join(str(broker) for broker in unknown)
        why = f"Unknown broker(s) in replica assignment: {listed}."
    elif len(placed) != wanted.partitions - have:
        why = (
            f"Increasing the number of partitions by {wanted.partitions - have}"
            f" but {len(placed)} assignments provided."
        )
    elif any(len(replicas) != factor for replicas in placed.values()):
        why = f"Inconsistent replication factor: the other partitions have {factor} replicas."
    else:
        why = why_unsound(placed, first_partition=have)
    return assigned(placed.items()) if why is None else Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def _place(
    context: ControllerContext, rule: PlacementRule, wanted: PartitionsWanted, found: TopicFound
) -> Turn[Placed | Refusal]:
    """Go on where the topic ended: from the first replica of partition 0, by id."""
    have, first = len(found.partitions), found.partitions[0].replicas
    start = start_for_added_partitions(list(context.brokers), first)
    rows = placed_rows(
        context.racks,
        wanted.partitions - have,
        len(first),
        start=start,
        shift=start,
        first_partition=have,
        rule=rule,
    )
    return rows if isinstance(rows, Refusal) else (yield from placed_in_slices(rows))
