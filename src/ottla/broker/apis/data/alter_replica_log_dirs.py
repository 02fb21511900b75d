"""AlterReplicaLogDirs 0-2: replicas are to lie in another log directory of this broker.

A replica that is not here yet is made in the wished directory when it comes. One that is here is copied, and
the copy takes over when it has everything; DescribeLogDirs tells how far it is.
"""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode, LogDirectoryFailed
from ottla.model.ids import TopicPartition
from ottla.model.topic_names import may_be_copied
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(node: Node, request: Request, body: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Answer each replica by itself; of one named twice the last word counts."""
    wished = {
        TopicPartition(topic.name, index): directory.path
        for directory in body.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for name, path in wished.items():
        result = topics.get(name.topic)
        if result is None:
            result = topics[name.topic] = AlterReplicaLogDirTopicResult(topic_name=name.topic, partitions=[])
        code = _place(node, path, name)
        result.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=int(code))
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _place(node: Node, path: str, name: TopicPartition) -> ErrorCode:
    if not may_be_copied(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in node.log_dirs.directories:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if path in node.log_dirs.offline or node.partitions.is_offline(*name):
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = node.partitions.find(*name)
    if partition is None:
        node.directory_moves.wishes[name] = path
        return ErrorCode.REPLICA_NOT_AVAILABLE
    try:
        node.directory_moves.begin(partition, path)
    except LogDirectoryFailed as failed:
        node.partitions.directory_failed(failed)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
