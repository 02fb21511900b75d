"""DeleteTopics 0-6: the active controller marks the topics and waits until nobody is told of them."""

from ottla.broker.clients.request import Request
from ottla.broker.controlling.steps import Fence
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps, persistently
from ottla.model.errors import ErrorCode
from ottla.model.ids import ZERO_TOPIC_ID, TopicId
from ottla.security.acls.kinds import Operation
from ottla.wire.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.znodes import paths
from ottla.zookeeper.ops import Create, Failed, Multi, MultiFailed, ZkCode

STRICT_SINCE = 5
"""Clients of older versions do not know the refusal: their topics are deleted, and they wait afterwards."""
Doomed = dict[str, list[DeletableTopicResult]]


def handle(node: Node, request: Request, body: DeleteTopicsRequest) -> DeleteTopicsResponse | None:
    """Success means that the topic is out of the metadata; logs and znodes follow."""
    asked = body.topics if request.api_version >= 6 else [DeleteTopicState(name=n) for n in body.topic_names]
    term = node.controller.term
    if term is None:
        return _all(asked, ErrorCode.NOT_CONTROLLER)
    if not node.config.topics.delete_topic_enable:
        disabled = request.api_version >= 3
        return _all(asked, ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST)
    if any(topic.name is not None and topic.topic_id != ZERO_TOPIC_ID for topic in asked):
        return _all(asked, ErrorCode.INVALID_REQUEST)  # Nobody can tell what was meant by the others.
    rows = [_judge(node, request, topic) for topic in asked]
    doomed = _doomed(rows)
    _charge(node, request, doomed)
    node.tasks.spawn(
        _mark(doomed, term.fence),
        request,
        lambda _: _wait(node, request, DeleteTopicsResponse(responses=rows), body.timeout_ms),
    )
    return None


def _all(asked: list[DeleteTopicState], error: ErrorCode) -> DeleteTopicsResponse:
    rows = [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error) for topic in asked
    ]
    return DeleteTopicsResponse(responses=rows)


def _judge(node: Node, request: Request, topic: DeleteTopicState) -> DeletableTopicResult:
    """A topic on its way out has still its id, but nobody is told of it any more."""
    row = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=ErrorCode.NONE)
    if row.name is None:
        row.name = node.controller.topic_name(TopicId(topic.topic_id))
    if row.name is None:
        row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
    elif request.access is not None and (
        topic.name is None and not request.access.topic(row.name, Operation.DESCRIBE)
    ):
        row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        row.name = None  # Who may not describe a topic learns no name by its id, and deletes nothing by it.
    elif request.access is not None and not request.access.topic(row.name):
        row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif row.name not in node.metadata.topics:
        row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return row


def _doomed(rows: list[DeletableTopicResult]) -> Doomed:
    """What can be deleted; a topic named twice, perhaps by its id, is deleted once for all its rows."""
    doomed: Doomed = {}
    for row in rows:
        if row.error_code == ErrorCode.NONE and row.name is not None:
            doomed.setdefault(row.name, []).append(row)
    return doomed


def _charge(node: Node, request: Request, doomed: Doomed) -> None:
    """Spare what the client's quota of mutations does not allow to be deleted."""
    for name in list(doomed):
        count = len(node.metadata.topics[name].partitions)
        if not node.client_quotas.may_mutate(request, count, request.api_version >= STRICT_SINCE):
            for row in doomed.pop(name):
                row.error_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def _mark(doomed: Doomed, fence: Fence) -> Steps[None]:
    """Fenced: a late mark would delete a topic that was made anew under the next controller."""
    for name, rows in doomed.items():
        result = yield from persistently(Multi((fence.check, Create(paths.delete_topic(name)))))
        if isinstance(result, MultiFailed) and result.index == 0:
            _refuse(rows, ErrorCode.NOT_CONTROLLER, "Another controller was elected.")
        elif isinstance(result, Failed | MultiFailed) and result.code is not ZkCode.NODE_EXISTS:
            why = f"ZooKeeper refused the mark: {result.code.name}"
            _refuse(rows, ErrorCode.UNKNOWN_SERVER_ERROR, why)


def _refuse(rows: list[DeletableTopicResult], error: ErrorCode, why: str) -> None:
    for row in rows:
        row.error_code, row.error_message = error, why


def _wait(node: Node, request: Request, response: DeleteTopicsResponse, timeout_ms: int) -> None:
    doomed = [row for row in response.responses if row.error_code == ErrorCode.NONE]

    def all_gone() -> bool:
        return all(row.name not in node.metadata.topics for row in doomed)

    def then(in_time: bool) -> None:
        for row in doomed:
            if not in_time and row.name in node.metadata.topics:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
        request.reply(response)

    node.metadata_waits.wait(all_gone, timeout_ms, then)
