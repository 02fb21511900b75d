"""ApiVersions: the first thing every client asks. Above our highest version it is told so in version 0."""

import re
from typing import TYPE_CHECKING

from ottla.broker.clients.request import Request
from ottla.model.errors import ErrorCode
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.keys import ApiKey

if TYPE_CHECKING:
    from ottla.broker.apis import Api
    from ottla.broker.node import Node

WITHOUT_TWO_PHASE_COMMIT = 5
"""The highest InitProducerId of Kafka 3.9."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client may call itself and its version (KIP-511)."""


def handle(node: "Node", request: Request, body: ApiVersionsRequest) -> ApiVersionsResponse:
    """Every API of the list with its versions, and the epoch of the (always empty) feature set."""
    if request.api_version >= 3 and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=advertised(node),
        finalized_features_epoch=node.features.epoch,
    )


def refuse_version(node: "Node", request: Request) -> None:
    """A version we do not know: answer in version 0, whose client will then ask with a lower one."""
    request.api_version = 0
    request.reply(
        ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=advertised(node, only_itself=True)
        )
    )


def _highest(node: "Node", api: "Api") -> int:
    """InitProducerId 6 is for two-phase commit: without it nobody need ask."""
    is_on = node.config.transactions.transaction_two_phase_commit_enable
    return api.max_version if is_on or api.key != ApiKey.INIT_PRODUCER_ID else WITHOUT_TWO_PHASE_COMMIT


def advertised(node: "Node", only_itself: bool = False) -> list[ApiVersion]:
    """The list as ApiVersions carries it."""
    return [
        ApiVersion(api_key=api.key, min_version=api.min_version, max_version=_highest(node, api))
        for api in node.apis
        if api is not None and (not only_itself or api.key == 18)
    ]
