"""DescribeCluster 0-1: the cluster's id, controller and brokers."""

from ottla.broker.apis.cluster.metadata import brokers_shown
from ottla.broker.clients import authorized_operations
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle(node: Node, request: Request, body: DescribeClusterRequest) -> DescribeClusterResponse:
    """What UpdateMetadata told, as seen through the client's listener."""
    if request.api_version >= 1 and body.endpoint_type != BROKERS:
        return _refusal(body.endpoint_type)
    image = node.metadata
    brokers = [
        DescribeClusterBroker(broker_id=live.broker, host=endpoint.host, port=endpoint.port, rack=live.rack)
        for live in brokers_shown(node)
        if (endpoint := live.endpoints.get(request.listener)) is not None
    ]
    return DescribeClusterResponse(
        cluster_id=node.identity.cluster_id,
        controller_id=image.controller,
        brokers=brokers,
        cluster_authorized_operations=authorized_operations.of_cluster(
            request, is_asked=body.include_cluster_authorized_operations
        ),
    )


def _refusal(endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of"
            " type CONTROLLER",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"Unsupported endpoint type {endpoint_type}",
    )
