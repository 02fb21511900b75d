"""DeleteTopics 0-6: the active controller marks the topics and waits until nobody is told of them."""

from typing import TYPE_CHECKING

from ottla.broker.controller_steps import Fence
from ottla.broker.request import Request
from ottla.broker.topic_writer import Deposed, fenced
from ottla.broker.zk_desk import Steps
from ottla.model.errors import ErrorCode
from ottla.model.ids import ZERO_TOPIC_ID, TopicId
from ottla.wire.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.zookeeper import paths
from ottla.zookeeper.ops import Create, Failed, ZkCode

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: DeleteTopicsRequest) -> DeleteTopicsResponse | None:
    """Success means that the topic is out of the metadata; logs and znodes follow."""
    asked = body.topics if request.api_version >= 6 else [DeleteTopicState(name=n) for n in body.topic_names]
    term = node.controller.term
    if term is None:
        return _all(asked, ErrorCode.NOT_CONTROLLER)
    if not node.config.topics.delete_topic_enable:
        disabled = request.api_version >= 3
        return _all(asked, ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST)
    rows = [_judge(node, topic) for topic in asked]
    _refuse_duplicates(rows)
    doomed = [row for row in rows if row.error_code == ErrorCode.NONE]
    node.zk.run(
        _mark(doomed, term.fence),
        lambda _: _wait(node, request, DeleteTopicsResponse(responses=rows), body.timeout_ms),
    )
    return None


def _all(asked: list[DeleteTopicState], error: ErrorCode) -> DeleteTopicsResponse:
    rows = [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error) for topic in asked
    ]
    return DeleteTopicsResponse(responses=rows)


def _judge(node: "Node", topic: DeleteTopicState) -> DeletableTopicResult:
    row = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=ErrorCode.NONE)
    if topic.name is not None and topic.topic_id != ZERO_TOPIC_ID:
        row.error_code = ErrorCode.INVALID_REQUEST
        row.error_message = "Topic name and topic ID can not both be specified."
    elif topic.name is not None:
        if topic.name not in node.metadata.topics:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        row.name = node.controller.topic_name(TopicId(topic.topic_id))
        if row.name is None:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
    return row


def _refuse_duplicates(rows: list[DeletableTopicResult]) -> None:
    """The same topic by name and by id, or twice, is no clear wish."""
    seen: dict[str, DeletableTopicResult] = {}
    for row in rows:
        if row.name is None or row.error_code != ErrorCode.NONE:
            continue
        if row.name in seen:
            for each in (seen[row.name], row):
                each.error_code = ErrorCode.INVALID_REQUEST
                each.error_message = "The provided topic name maps to an ID that was already supplied."
        seen[row.name] = row


def _mark(rows: list[DeletableTopicResult], fence: Fence) -> Steps[None]:
    """Fenced: a late mark would delete a topic that was made anew under the next controller."""
    for row in rows:
        assert row.name is not None, "a topic that can be deleted has a name"
        result = yield from fenced(fence, Create(paths.delete_topic(row.name)))
        if isinstance(result, Deposed):
            row.error_code = ErrorCode.NOT_CONTROLLER
            row.error_message = "Another controller was elected."
        elif isinstance(result, Failed) and result.code is not ZkCode.NODE_EXISTS:
            row.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            row.error_message = f"ZooKeeper refused the mark: {result.code.name}"


def _wait(node: "Node", request: Request, response: DeleteTopicsResponse, timeout_ms: int) -> None:
    doomed = [row for row in response.responses if row.error_code == ErrorCode.NONE]

    def all_gone() -> bool:
        return all(row.name not in node.metadata.topics for row in doomed)

    def then(in_time: bool) -> None:
        for row in doomed:
            if not in_time and row.name in node.metadata.topics:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
        request.reply(response)

    node.controller.waits.wait(all_gone, timeout_ms, then)
