"""JoinGroup: a member wants into the next generation of its group."""

from typing import Any

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.coordinator.group import answers
from ottla.coordinator.group.members import Protocol
from ottla.coordinator.group.requests import Join
from ottla.model.errors import ErrorCode
from ottla.model.hosts import as_in_java
from ottla.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.primitives import fits_string

FIRST_WITH_REQUIRED_ID = 4
FIRST_WITH_REBALANCE_TIMEOUT = 1
FIRST_WITH_NULL_PROTOCOL = 7
FIRST_WITH_SKIP_ASSIGNMENT = 9
UUID_BYTES = 37
"""A dash and a UUID: what a member's id has behind the name of its client or instance."""


def handle(node: Node, request: Request, body: JoinGroupRequest) -> JoinGroupResponse | None:
    host = node.group_coordinator
    version = request.api_version

    def reply(response: Any) -> None:
        if version < FIRST_WITH_NULL_PROTOCOL and response.protocol_name is None:
            response.protocol_name = ""
        request.reply(response)

    found = host.find(body.group_id)
    if not body.group_id:
        found = ErrorCode.INVALID_GROUP_ID
    elif not _can_be_stored(request, body):
        found = ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        reply(answers.join_refused(body.member_id, found))
        return None
    shard, number = found
    join = Join(
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        client_id=request.client_id or "",
        client_host=f"/{as_in_java(request.client_host)}",
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms if version >= FIRST_WITH_REBALANCE_TIMEOUT else body.session_timeout_ms
        ),
        session_timeout_ms=body.session_timeout_ms,
        protocol_type=body.protocol_type,
        protocols=tuple(Protocol(offer.name, bytes(offer.metadata)) for offer in body.protocols),
        must_know_its_id=version >= FIRST_WITH_REQUIRED_ID and body.group_instance_id is None,
        may_skip_assignment=version >= FIRST_WITH_SKIP_ASSIGNMENT,
    )
    host.perform(number, shard.join(host.token(reply), join, host.now()))
    return None


def _can_be_stored(request: Request, body: JoinGroupRequest) -> bool:
    """One member whose names fit into no answer and no record would leave the others without theirs."""
    named = (request.client_id or "", body.group_instance_id or "")
    spoken = (body.protocol_type, *(offer.name for offer in body.protocols))
    return all(fits_string(name, UUID_BYTES) for name in named) and all(map(fits_string, spoken))
