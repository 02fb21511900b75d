"""DescribeLogDirs 0-4: what lies in the log directories, how large, how far behind."""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.storage.log import Log
from ottla.wire.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """All logs, or those asked for, directory by directory; a failed directory says only that."""
    wanted: set[tuple[str, int]] | None = None
    if body.topics is not None:
        wanted = {(topic.topic, index) for topic in body.topics for index in topic.partitions}
    logs: dict[str, list[tuple[TopicPartition, Log]]] = {}
    for name, each in node.log_dirs.logs.items():
        if wanted is None or name in wanted:
            logs.setdefault(each.directory, []).append((name, each))
    return DescribeLogDirsResponse(
        results=[_describe(node, path, logs.get(path, [])) for path in node.log_dirs.directories]
    )


def _describe(node: "Node", path: str, logs: list[tuple[TopicPartition, Log]]) -> DescribeLogDirsResult:
    if path in node.log_dirs.offline:
        return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=path, topics=[])
    result = DescribeLogDirsResult(log_dir=path, topics=[])
    try:
        result.total_bytes, result.usable_bytes = node.disk.space(path)
    except OSError:
        return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=path, topics=[])
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, each in logs:
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = DescribeLogDirsTopic(name=name.topic, partitions=[])
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=name.partition, partition_size=each.size_bytes, offset_lag=_lag(each)
            )
        )
    result.topics = list(topics.values())
    return result


def _lag(partition_log: Log) -> int:
    """How far the log's end is behind what is known to be committed; a leader is never."""
    return max(0, partition_log.high_watermark - partition_log.end_offset)
