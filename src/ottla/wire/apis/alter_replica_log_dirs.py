"""AlterReplicaLogDirs: replicas move to another log directory of their broker."""

from ottla.wire.fields import Request, Response, Struct, i16, i32


class AlterReplicaLogDirTopic(Struct):
    name: str = ""
    partitions: tuple[i32, ...] = ()


class AlterReplicaLogDir(Struct):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Request):
    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: i32 = 0
    error_code: i16 = 0


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
