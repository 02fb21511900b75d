"""AlterConfigs 0-2: a resource's overrides replaced as a whole; written by the broker that is asked."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.config_changes import Outcome, change_all, replaced
from ottla.broker.request import Request
from ottla.wire.apis.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: AlterConfigsRequest) -> None:
    """Answered when ZooKeeper has answered."""

    def change(resource: AlterConfigsResource, before: Mapping[str, str]) -> dict[str, str]:
        return replaced([(row.name, row.value) for row in resource.configs])

    def reply(outcomes: list[Outcome]) -> None:
        request.reply(
            AlterConfigsResponse(
                responses=[
                    AlterConfigsResourceResponse(
                        error_code=code, error_message=message, resource_type=kind, resource_name=name
                    )
                    for kind, name, code, message in outcomes
                ]
            )
        )

    change_all(node, body.resources, change, body.validate_only, reply)
