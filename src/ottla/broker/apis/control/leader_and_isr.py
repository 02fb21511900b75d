"""LeaderAndIsr 0-7: the controller says which partitions to lead and which to follow."""

import logging

from ottla.broker.apis.control.fences import fence
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.replicas.assignment import Assigned, AssignmentDone
from ottla.broker.runtime.tasks import Steps
from ottla.model.errors import ErrorCode
from ottla.model.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

log = logging.getLogger(__name__)

TOPIC_ERRORS_SINCE = 5


def handle(node: Node, request: Request, body: LeaderAndIsrRequest) -> LeaderAndIsrResponse | None:
    """Obey, unless a fence stops it. Settings of topics that are new here are read first, all at once."""
    error = fence(node, body.controller_epoch, body.broker_epoch, body.is_kraft_controller)
    assigned = _assigned(body)
    if error is not ErrorCode.NONE:
        return _refuse(body, request.api_version, assigned, error)
    steps = _obey(node, request, body, assigned)
    unread = _unread(node, assigned)
    if unread:
        read = node.configs.read_topics(unread)
        node.tasks.spawn(read, request, lambda _: node.control_requests.put(steps, request))
    else:
        node.control_requests.put(steps, request)
    return None


def _assigned(body: LeaderAndIsrRequest) -> list[Assigned]:
    """Of a partition that is named twice the last word counts."""
    assigned = [
        Assigned(TopicPartition(state.topic_name, state.partition_index), ZERO_TOPIC_ID, state)
        for state in body.ungrouped_partition_states
    ]
    for topic in body.topic_states:
        topic_id = TopicId(topic.topic_id)
        assigned += [
            Assigned(TopicPartition(topic.topic_name, state.partition_index), topic_id, state)
            for state in topic.partition_states
        ]
    return list({each.partition: each for each in assigned}.values())


def _unread(node: Node, assigned: list[Assigned]) -> set[str]:
    """The topics whose settings are not known.

    What was read under a name is this topic's if a log of this topic was here: then it was there at the
    time. Otherwise it may be that of a topic of the same name that was deleted.
    """
    logs = node.log_dirs.logs
    topics = {each.partition.topic for each in assigned}
    known = {
        each.partition.topic
        for each in assigned
        if (own := logs.get(each.partition)) is not None and (own.topic_id or ZERO_TOPIC_ID) == each.topic_id
    }
    return topics - known | set(node.configs.unread(known))


def _obey(node: Node, request: Request, body: LeaderAndIsrRequest, assigned: list[Assigned]) -> Steps[None]:
    """Since the request came another controller may have spoken, or the broker may have registered anew."""
    version = request.api_version
    error = fence(node, body.controller_epoch, body.broker_epoch, body.is_kraft_controller)
    if error is not ErrorCode.NONE:
        request.reply(_refuse(body, version, assigned, error))
        return
    done = AssignmentDone()
    # The controller may have seen a registration of ours whose answer is still on its way to us.
    own_epoch = max(node.identity.broker_epoch, body.broker_epoch)
    yield from node.assignment.assign(assigned, done)
    node.identity.assigned_as = own_epoch
    log.info(
        "leader and isr controller=%d epoch=%d partitions=%d leads=%d follows=%d refused=%d",
        body.controller_id,
        body.controller_epoch,
        len(done.answers),
        done.leads,
        done.follows,
        sum(code is not ErrorCode.NONE for code in done.answers.values()),
    )
    request.reply(_response(version, ErrorCode.NONE, assigned, done.answers))


def _refuse(
    body: LeaderAndIsrRequest, version: int, assigned: list[Assigned], error: ErrorCode
) -> LeaderAndIsrResponse:
    log.warning(
        "leader and isr refused error=%s controller=%d epoch=%d broker_epoch=%d",
        error.name,
        body.controller_id,
        body.controller_epoch,
        body.broker_epoch,
    )
    return _response(version, error, assigned, dict.fromkeys((each.partition for each in assigned), error))


def _response(
    version: int, error: ErrorCode, assigned: list[Assigned], answers: dict[TopicPartition, ErrorCode]
) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse(error_code=int(error), partition_errors=[], topics=[])
    topics: dict[TopicId, LeaderAndIsrTopicError] = {}
    for name, topic_id, _ in assigned:
        result = LeaderAndIsrPartitionError(
            topic_name=name.topic, partition_index=name.partition, error_code=int(answers[name])
        )
        if version < TOPIC_ERRORS_SINCE:
            response.partition_errors.append(result)
            continue
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=[])
        topic.partition_errors.append(result)
    response.topics = list(topics.values())
    return response
