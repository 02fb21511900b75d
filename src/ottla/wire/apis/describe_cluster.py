"""DescribeCluster: the brokers, the controller and the cluster's id."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i8, i16, i32, not_ignorable, since


class DescribeClusterRequest(Request):
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[i8, since(1), not_ignorable] = 1


class DescribeClusterBroker(Struct):
    broker_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


class DescribeClusterResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: str = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -0x8000_0000
