"""Error codes of the transaction coordinator, in the words of older clients."""

from ottla.model.errors import ErrorCode

PRODUCER_FENCED_SINCE = 2
"""The version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""


def in_version(error: ErrorCode, version: int, fenced_since: int = PRODUCER_FENCED_SINCE) -> ErrorCode:
    """PRODUCER_FENCED came with KIP-588; clients before it know INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
