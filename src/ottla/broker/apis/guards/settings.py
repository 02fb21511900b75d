"""Guards of APIs that change settings: each resource has its own answer."""

from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import FORBIDDEN_CLUSTER, FORBIDDEN_TOPIC, adding
from ottla.broker.clients.request import Request
from ottla.broker.settings.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, TOPIC
from ottla.wire.apis.alter_configs import AlterConfigsResourceResponse

TOPIC_WORDS = "Topic authorization failed."


def alter_configs(node: Any, access: Access, request: Request, body: Any) -> None:
    """Of AlterConfigs and IncrementalAlterConfigs."""
    errors = [refusal(access, each.resource_type, each.resource_name) for each in body.resources]
    rows = [
        AlterConfigsResourceResponse(error, None, each.resource_type, each.resource_name)
        for each, error in zip(body.resources, errors, strict=True)
        if error
    ]
    body.resources = [each for each, error in zip(body.resources, errors, strict=True) if not error]
    request.amend = adding("responses", rows) if rows else None


def refusal(access: Access, kind: int, name: str) -> int:
    """The error code for one resource; 0 for one that is allowed, or that nobody knows."""
    if kind == TOPIC:
        return 0 if access.topic(name) else FORBIDDEN_TOPIC
    if kind in (BROKER, BROKER_LOGGER, CLIENT_METRICS):
        return 0 if access.cluster() else FORBIDDEN_CLUSTER
    return 0
