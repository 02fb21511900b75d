"""The topics that brokers keep for themselves."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Topics that clients are told are internal, and may not write to."""
DECISIONS_TOPIC: Final = "__ottla_decisions"
"""Why things are as they are: decisions and loss receipts, open to every reader."""
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
"""KRaft's own log, which nobody may create."""
