"""The states of a transaction and the legal moves between them."""

from enum import IntEnum

from ottla.wire.stored import TRANSACTION_STATES


class TransactionState(IntEnum):
    """With the numbers that the log stores."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """Never stored by us: an expired id ends with a tombstone."""
    PREPARE_EPOCH_FENCE = 7
    """Never stored: a fence and its abort are one step."""

    @property
    def shown(self) -> str:
        """The name that DescribeTransactions and ListTransactions return."""
        return TRANSACTION_STATES[self]


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
IDLE = frozenset({_EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is open or ending."""

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The outcome is decided, and not every partition has its marker yet."""

COMPLETE_OF: dict[TransactionState, TransactionState] = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}

LEGAL_PREVIOUS: dict[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: IDLE,
    _ONGOING: IDLE | {_ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({_ONGOING}),
    TransactionState.PREPARE_ABORT: frozenset({_ONGOING}),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}
"""For each state, the states a transaction may come from."""
