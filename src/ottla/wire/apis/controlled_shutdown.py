"""ControlledShutdown: a broker asks the controller to move its leaderships away."""

from typing import Annotated, ClassVar

from ottla.wire.fields import Request, Response, Spec, Struct, i16, i32, i64, since
from ottla.wire.keys import ApiKey


class ControlledShutdownRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 3), flexible=3, api_key=ApiKey.CONTROLLED_SHUTDOWN)

    broker_id: i32 = 0
    broker_epoch: Annotated[i64, since(2)] = -1


class RemainingPartition(Struct):
    topic_name: str = ""
    partition_index: i32 = 0


class ControlledShutdownResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 3), flexible=3, api_key=ApiKey.CONTROLLED_SHUTDOWN)

    error_code: i16 = 0
    remaining_partitions: list[RemainingPartition] = []
