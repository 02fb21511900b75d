"""AlterReplicaLogDirs: replicas move to another log directory of their broker."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32
from ottla.wire.keys import ApiKey


class AlterReplicaLogDirTopic(Struct):
    name: str = ""
    partitions: tuple[i32, ...] = ()


class AlterReplicaLogDir(Struct):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.ALTER_REPLICA_LOG_DIRS)

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 2), flexible=2, api_key=ApiKey.ALTER_REPLICA_LOG_DIRS)

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
