"""The refusal of a whole request by one error code."""

from typing import Any

from ottla.broker.access.access import Access
from ottla.broker.apis.guards.rows import (
    CLUSTER_WORDS,
    FORBIDDEN_CLUSTER,
    FORBIDDEN_GROUP,
    FORBIDDEN_TRANSACTION,
)
from ottla.broker.clients.request import Request
from ottla.wire.apis import message_classes
from ottla.wire.keys import ApiKey


def refuse(node: Any, access: Access, request: Request, body: Any) -> Any:
    """Who lacks the one right of the row gets the API's answer with an error and nothing else."""
    if hasattr(body, "group_id"):
        return None if access.group(body.group_id) else refused(request, FORBIDDEN_GROUP)
    if hasattr(body, "transactional_id"):
        is_allowed = access.transaction(body.transactional_id)
        return None if is_allowed else refused(request, FORBIDDEN_TRANSACTION)
    return None if access.cluster() else refused(request, FORBIDDEN_CLUSTER)


def refused(request: Request, error: int) -> Any:
    """The API's answer that says only this."""
    response = message_classes(ApiKey(request.api_key))[1]
    fields: dict[str, Any] = {"error_code": error}
    if "error_message" in response.__struct_fields__:
        fields["error_message"] = CLUSTER_WORDS
    if request.api_key == ApiKey.JOIN_GROUP and request.api_version >= 7:
        fields["protocol_name"] = None
    if "error_code" not in response.__struct_fields__:
        raise AssertionError(f"{response.__name__} needs a guard of its own")
    return response(**fields)
