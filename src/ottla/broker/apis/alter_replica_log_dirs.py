"""AlterReplicaLogDirs 0-2: replicas are to lie in another log directory of this broker.

A replica that is not here yet is made in the wished directory when it comes. Moving one that is here is not
done: such a wish is refused, unless it lies there already.
"""

from typing import TYPE_CHECKING

from ottla.broker.request import Request
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Answer each replica by itself."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in body.dirs:
        for topic in directory.topics:
            result = topics.get(topic.name)
            if result is None:
                result = topics[topic.name] = AlterReplicaLogDirTopicResult(
                    topic_name=topic.name, partitions=[]
                )
            for index in topic.partitions:
                code = _place(node, directory.path, TopicPartition(topic.name, index))
                result.partitions.append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(code))
                )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _place(node: "Node", path: str, name: TopicPartition) -> ErrorCode:
    if path not in node.log_dirs.live_paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if node.partitions.is_offline(*name):
        return ErrorCode.KAFKA_STORAGE_ERROR
    found = node.log_dirs.get(name)
    if found is None:
        node.partitions.wished_directories[name] = path
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE if found.directory == path else ErrorCode.UNSUPPORTED_VERSION
