"""DescribeLogDirs 0-4: what lies in the log directories, how large, how far behind."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.storage.log.log import Log
from ottla.wire.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(node: Node, request: Request, body: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """All logs, or those asked for, directory by directory; a failed directory says only that."""
    wanted: set[tuple[str, int]] | None = None
    if body.topics is not None:
        wanted = {(topic.topic, index) for topic in body.topics for index in topic.partitions}
    logs: dict[str, list[tuple[TopicPartition, Log]]] = {}
    for name, each in node.log_dirs.logs.items():
        if wanted is None or name in wanted:
            logs.setdefault(each.directory, []).append((name, each))
    for future in node.log_dirs.futures:
        if wanted is None or future.partition in wanted:
            logs.setdefault(future.directory, []).append((future.partition, future))
    return DescribeLogDirsResponse(
        results=[_describe(node, path, logs.get(path, [])) for path in node.log_dirs.directories]
    )


def _describe(node: Node, path: str, logs: list[tuple[TopicPartition, Log]]) -> DescribeLogDirsResult:
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
                partition_index=name.partition,
                partition_size=each.size_bytes,
                offset_lag=_lag(node.log_dirs.get(name), each),
                is_future_key=node.log_dirs.get(name) is not each,
            )
        )
    result.topics = list(topics.values())
    return result


def _lag(current: Log | None, described: Log) -> int:
    """How far a copy is behind its log; how far a log is behind what is known to be committed."""
    if current is not None and current is not described:
        return max(0, current.end_offset - described.end_offset)
    return max(0, described.high_watermark - described.end_offset)
