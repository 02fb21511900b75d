"""ControlledShutdown: a broker asks the controller to move its leaderships away."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, i64, since


class ControlledShutdownRequest(Request):
    broker_id: i32 = 0
    broker_epoch: Annotated[i64, since(2)] = -1


class RemainingPartition(Struct):
    topic_name: str = ""
    partition_index: i32 = 0


class ControlledShutdownResponse(Response):
    error_code: i16 = 0
    remaining_partitions: list[RemainingPartition] = []
