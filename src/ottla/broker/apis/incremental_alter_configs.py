"""IncrementalAlterConfigs 0-1: single overrides set, deleted, appended to or subtracted from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.config_changes import Outcome, change_all, edited
from ottla.broker.request import Request
from ottla.wire.apis.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.node import Node


def handle(node: "Node", request: Request, body: IncrementalAlterConfigsRequest) -> None:
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

    change_all(node, body.resources, change, body.validate_only, reply)
