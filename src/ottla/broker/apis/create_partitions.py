"""CreatePartitions 0-3: the active controller enlarges the topics' assignments, and waits for leaders."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.controller_steps import Fence
from ottla.broker.request import Request
from ottla.broker.topic_requests import TopicRefused, placed_in_turns, placement_rule, why_unsound
from ottla.broker.topic_writer import why_lost_for_good
from ottla.broker.zk_desk import Steps, persistently
from ottla.controller.placement import placed_rows, start_for_added_partitions
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_LEADER, BrokerId
from ottla.model.partition_state import ReplicaAssignment
from ottla.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.zookeeper import paths
from ottla.zookeeper.codec import MalformedZnode, TopicNode, decode_topic, encode_topic
from ottla.zookeeper.ops import (
    Data,
    Exists,
    Found,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    SetData,
    ZkCode,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node

Added = dict[int, ReplicaAssignment]


def handle(node: "Node", request: Request, body: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    """Refused by a broker that is not the controller; otherwise answered when the leaders are known."""
    term = node.controller.term
    if term is None:
        rows = [_row(topic.name, ErrorCode.NOT_CONTROLLER, None) for topic in body.topics]
        return CreatePartitionsResponse(results=rows)
    named = Counter(topic.name for topic in body.topics)
    answers: dict[str, CreatePartitionsTopicResult] = {}
    wanted = []
    for topic in body.topics:
        row = _row(topic.name, ErrorCode.NONE, None)
        if named[topic.name] > 1:
            row = _row(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
        else:
            wanted.append((topic, row))
        answers.setdefault(topic.name, row)
    rows = list(answers.values())
    node.zk.run(
        _grow_all(node, term.fence, wanted, body.validate_only),
        lambda _: _wait(node, request, wanted, rows, body.validate_only, body.timeout_ms),
    )
    return None


def _row(name: str, error: ErrorCode, why: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=why)


def _grow_all(
    node: "Node",
    fence: Fence,
    wanted: list[tuple[CreatePartitionsTopic, CreatePartitionsTopicResult]],
    validate_only: bool,
) -> Steps[None]:
    for topic, row in wanted:
        refused = yield from _grow(node, fence, topic, validate_only)
        if refused is not None:
            row.error_code, row.error_message = refused.error, refused.why


def _grow(
    node: "Node", fence: Fence, topic: CreatePartitionsTopic, validate_only: bool
) -> Steps[TopicRefused | None]:
    name = topic.name
    lost = 0
    while True:
        found = yield from persistently(GetData(paths.topic(name)))
        if not isinstance(found, Data):
            return _unknown(name)
        if isinstance((yield from persistently(Exists(paths.delete_topic(name)))), Found):
            return TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        try:
            before = decode_topic(name, found.data)
        except MalformedZnode as malformed:
            return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed))
        added = yield from _plan(node, topic, before)
        if isinstance(added, TopicRefused) or validate_only:
            return added if isinstance(added, TopicRefused) else None
        grown = encode_topic(TopicNode(before.topic_id, before.partitions | added, before.other))
        result = yield Multi((fence.check, SetData(paths.topic(name), grown, found.stat.version)))
        if isinstance(result, MultiDone):
            return None
        if isinstance(result, MultiFailed) and result.index == 0:
            return TopicRefused(ErrorCode.NOT_CONTROLLER, "Another controller was elected.")
        if isinstance(result, Lost):
            now = yield from persistently(GetData(paths.topic(name)))
            if isinstance(now, Data) and now.data == grown:
                return None
            lost += 1
            if (refused := why_lost_for_good(len(grown), lost)) is not None:
                return refused
        elif result.code is not ZkCode.BAD_VERSION:
            return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper refused: {result.code.name}")


def _unknown(name: str) -> TopicRefused:
    return TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _plan(node: "Node", topic: CreatePartitionsTopic, before: TopicNode) -> Steps[Added | TopicRefused]:
    name, have = topic.name, len(before.partitions)
    if any(assignment.is_being_reassigned for assignment in before.partitions.values()):
        return TopicRefused(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{name}'.",
        )
    if not have:
        return _unknown(name)
    if topic.count < have:
        return TopicRefused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {have} partitions, which is higher than the requested {topic.count}.",
        )
    if topic.count == have:
        return TopicRefused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partitions.")
    if not _is_whole(before):
        why = f"Partitions or replicas are missing in the assignment of the topic '{name}'."
        return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    if topic.assignments is not None:
        return _by_hand(node, topic, before)
    return (yield from _placed(node, topic.count - have, before))


def _is_whole(topic: TopicNode) -> bool:
    """Whether it has the partitions from 0 on, of which the first says how many replicas there shall be."""
    have = topic.partitions
    return min(have) == 0 and max(have) == len(have) - 1 and bool(have[0].replicas)


def _by_hand(node: "Node", topic: CreatePartitionsTopic, before: TopicNode) -> Added | TopicRefused:
    assert topic.assignments is not None, "the caller saw some"
    have = len(before.partitions)
    factor = len(before.partitions[0].replicas)
    placed = {
        have + i: tuple(BrokerId(broker) for broker in row.broker_ids)
        for i, row in enumerate(topic.assignments)
    }
    unknown = sorted({b for replicas in placed.values() for b in replicas} - set(node.metadata.brokers))
    why: str | None = None
    if unknown:
        listed = ", ".join(str(broker) for broker in unknown)
        why = f"Unknown broker(s) in replica assignment: {listed}."
    elif len(placed) != topic.count - have:
        why = (
            f"Increasing the number of partitions by {topic.count - have}"
            f" but {len(placed)} assignments provided."
        )
    elif any(len(replicas) != factor for replicas in placed.values()):
        why = f"Inconsistent replication factor: the other partitions have {factor} replicas."
    else:
        why = why_unsound(placed, first_partition=have)
    if why is not None:
        return TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    return {index: ReplicaAssignment(replicas) for index, replicas in placed.items()}


def _placed(node: "Node", count: int, before: TopicNode) -> Steps[Added | TopicRefused]:
    """Go on where the topic ended: from the first replica of partition 0, by id."""
    racks = {broker: node.metadata.brokers[broker].rack for broker in sorted(node.metadata.brokers)}
    first = before.partitions[0].replicas
    start = start_for_added_partitions(list(racks), first)
    placed = yield from placed_in_turns(
        placed_rows(
            racks,
            count,
            len(first),
            start=start,
            shift=start,
            first_partition=len(before.partitions),
            rule=placement_rule(node),
        )
    )
    if isinstance(placed, TopicRefused):
        return placed
    return {index: ReplicaAssignment(replicas) for index, replicas in placed.items()}


def _wait(
    node: "Node",
    request: Request,
    wanted: list[tuple[CreatePartitionsTopic, CreatePartitionsTopicResult]],
    rows: list[CreatePartitionsTopicResult],
    validate_only: bool,
    timeout_ms: int,
) -> None:
    grown = [(topic, row) for topic, row in wanted if row.error_code == ErrorCode.NONE]

    def all_led() -> bool:
        return validate_only or all(_is_led(node, topic) for topic, _ in grown)

    def then(in_time: bool) -> None:
        for topic, row in grown:
            if not in_time and not _is_led(node, topic):
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
        request.reply(CreatePartitionsResponse(results=rows))

    node.controller.waits.wait(all_led, timeout_ms, then)


def _is_led(node: "Node", wanted: CreatePartitionsTopic) -> bool:
    topic = node.metadata.topics.get(wanted.name)
    if topic is None or len(topic.partitions) < wanted.count:
        return False
    return all(info.leader != NO_LEADER for info in topic.partitions.values())
