"""UpdateFeatures 0-1: in ZooKeeper mode no feature can be finalized, and each wish is answered so."""

from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.model.errors import ErrorCode
from ottla.wire.apis.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_NOT_SUPPORTED = "Could not apply finalized feature update because the provided feature is not supported."


def handle(node: Node, request: Request, body: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """No feature is supported, so none can be changed."""
    if not node.controller.is_active:
        return UpdateFeaturesResponse(
            error_code=ErrorCode.NOT_CONTROLLER,
            error_message="This is not the correct controller for this cluster.",
        )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(
                feature=feature, error_code=ErrorCode.INVALID_REQUEST, error_message=_NOT_SUPPORTED
            )
            for feature in dict.fromkeys(update.feature for update in body.feature_updates)
        ],
    )
