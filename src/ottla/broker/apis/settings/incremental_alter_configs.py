"""IncrementalAlterConfigs 0-1: single overrides set, deleted, appended to or subtracted from."""

from collections.abc import Mapping

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.settings.changes import Outcome, edited
from ottla.wire.apis.alter_configs import AlterConfigsResourceResponse
from ottla.wire.apis.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(node: Node, request: Request, body: IncrementalAlterConfigsRequest) -> None:
    """Answered when ZooKeeper has answered."""

    def change(resource: AlterConfigsResource, before: Mapping[str, str]) -> dict[str, str]:
        rows = [(row.name, row.config_operation, row.value) for row in resource.configs]
        return edited(resource.resource_type, before, rows)

    def reply(outcomes: list[Outcome]) -> None:
        request.reply(
            IncrementalAlterConfigsResponse(
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
