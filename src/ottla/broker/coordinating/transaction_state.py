"""``__transaction_state``: the internal topic of the transaction coordinator."""

from collections.abc import Callable

from ottla.broker.coordinating.internal_topic import InternalTopic
from ottla.config.areas import TransactionsConfig
from ottla.coordinator.txn.core import TransactionShard
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import TRANSACTIONS_TOPIC

ALL_IN_SYNC = -1


def transaction_state(
    config: TransactionsConfig, request_timeout_ms: int, new_producer_id: Callable[[], int | None]
) -> InternalTopic[TransactionShard]:
    """The topic with the settings of this broker."""
    return InternalTopic(
        name=TRANSACTIONS_TOPIC,
        new_shard=lambda: TransactionShard(config, new_producer_id),
        partitions_planned=config.transaction_state_log_num_partitions,
        append_acks=ALL_IN_SYNC,
        append_timeout_ms=request_timeout_ms,
        invalid_key=ErrorCode.INVALID_REQUEST,
    )
