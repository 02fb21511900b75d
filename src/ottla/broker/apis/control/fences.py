"""Fences of the controller's requests: an old controller, or one that speaks to our past, changes nothing."""

from ottla.broker.node import Node
from ottla.model.errors import ErrorCode


def is_broker_epoch_stale(node: Node, broker_epoch: int) -> bool:
    """The request was meant for an earlier registration of ours; -1 comes from senders that do not say."""
    return broker_epoch != -1 and broker_epoch < node.identity.broker_epoch


def fence(node: Node, controller_epoch: int, broker_epoch: int, is_kraft_controller: bool) -> ErrorCode:
    """What to answer instead of obeying, or NONE; then the controller's epoch is remembered.

    A higher broker epoch than ours is accepted: the controller may know of a registration before we do.
    """
    if is_kraft_controller:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if is_broker_epoch_stale(node, broker_epoch):
        return ErrorCode.STALE_BROKER_EPOCH
    if controller_epoch < node.identity.controller_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    node.identity.controller_epoch = controller_epoch
    return ErrorCode.NONE
