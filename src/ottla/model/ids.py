"""Names and numbers of the cluster's things, so that they cannot be mixed up."""

import base64
import binascii
from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
LeaderEpoch = NewType("LeaderEpoch", int)
Offset = NewType("Offset", int)
TopicId = NewType("TopicId", bytes)
"""The 16 big-endian bytes of a topic's UUID, as they travel on the wire."""

NO_BROKER = BrokerId(-1)
NO_LEADER = BrokerId(-1)
LEADER_DURING_DELETE = BrokerId(-2)
CONSUMER = BrokerId(-1)
"""The replica id of a consumer."""
DEBUG_CONSUMER = BrokerId(-2)
"""The replica id of a reader that every replica answers, not only the leader."""
NO_EPOCH = LeaderEpoch(-1)
ZERO_TOPIC_ID = TopicId(bytes(16))


class TopicPartition(NamedTuple):
    """A partition's name; a tuple because it is a dictionary key on every hot path."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_id_text(topic_id: TopicId) -> str:
    """Kafka's text form: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(topic_id).decode("ascii").rstrip("=")


def topic_id_from_text(text: str) -> TopicId:
    """Read the text form; raises ``ValueError`` if it is not one."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a topic id: {error}") from None
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a topic id: it holds {len(raw)} bytes, not 16")
    return TopicId(raw)


def is_usable_topic_id(topic_id: TopicId) -> bool:
    """Kafka keeps the ids 0 and 1 for itself and avoids texts that begin with a dash."""
    reserved = int.from_bytes(topic_id, "big") < 2
    return not reserved and not topic_id_text(topic_id).startswith("-")
