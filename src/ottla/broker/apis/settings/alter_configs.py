"""AlterConfigs 0-2: a resource's overrides replaced as a whole; written by the broker that is asked."""

from collections.abc import Mapping

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.settings.changes import Outcome, replaced
from ottla.wire.apis.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(node: Node, request: Request, body: AlterConfigsRequest) -> None:
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

    steps = node.config_changes.change_all(body.resources, change, body.validate_only)
    node.tasks.spawn(steps, request, reply)
