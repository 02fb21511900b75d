"""Where Kafka keeps what in ZooKeeper."""

from typing import Final
from urllib.parse import quote, unquote_to_bytes

from ottla.model.ids import TopicPartition

CONSUMERS: Final = "/consumers"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE_ID: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER: Final = "/cluster"
CLUSTER_ID: Final = "/cluster/id"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = "/config/changes/config_change_"
CONFIG_TOPICS: Final = "/config/topics"
CONFIG_CLIENTS: Final = "/config/clients"
CONFIG_USERS: Final = "/config/users"
CONFIG_BROKERS: Final = "/config/brokers"
CONFIG_IPS: Final = "/config/ips"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
ISR_CHANGE_PREFIX: Final = "/isr_change_notification/isr_change_"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX: Final = "/log_dir_event_notification/log_dir_event_"
LATEST_PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
FEATURE: Final = "/feature"

DEATHS: Final = "/ottla/deaths"
"""Ottla's own: how the processes of brokers ended, as their guards tell."""

PERSISTENT: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    CONFIG_TOPICS,
    CONFIG_CLIENTS,
    CONFIG_USERS,
    CONFIG_BROKERS,
    CONFIG_IPS,
)
"""Nodes without data that every broker makes at start, with their parents, if they are missing."""

DEFAULT_ENTITY: Final = "<default>"
"""The literal name of the entity that stands for all others of its kind."""


def broker(broker_id: int) -> str:
    """A broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def death(broker_id: int) -> str:
    """How a broker's last process ended, until it is back."""
    return f"{DEATHS}/{broker_id}"


def topic(name: str) -> str:
    """A topic's id and replica assignment."""
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def topic_partition(partition: TopicPartition) -> str:
    """The parent of a partition's state."""
    return f"{TOPICS}/{partition[0]}/partitions/{partition[1]}"


def partition_state(partition: TopicPartition) -> str:
    """Leader, ISR and epochs of a partition."""
    return f"{TOPICS}/{partition[0]}/partitions/{partition[1]}/state"


def consumer_offset(group_id: str, partition: TopicPartition) -> str:
    """Where a consumer of the oldest kind keeps its committed offset."""
    return f"{CONSUMERS}/{group_id}/offsets/{partition.topic}/{partition.partition}"


def delete_topic(name: str) -> str:
    """The deletion marker of a topic."""
    return f"{DELETE_TOPICS}/{name}"


def config_entity(kind: str, name: str) -> str:
    """The overrides of one entity: ``topics``, ``brokers``, ``clients``, ``users`` or ``ips``."""
    return f"{CONFIG}/{kind}/{name}"


def sanitized(user: str) -> str:
    """A user's or client's name as the name of its znode: Java's URL encoding, with blanks as ``%20``."""
    return quote(user, safe="").replace("~", "%7E")


def desanitized(entity: str) -> str:
    """The name again; ``ValueError`` for a znode that no sanitizer named."""
    return unquote_to_bytes(entity).decode()


SEQUENCE_DIGITS: Final = 10


def sequence_number(name: str) -> int:
    """The number in a sequential node's name, as in ``config_change_0000000007``; -1 if it has none."""
    digits = name.rpartition("_")[2]
    if len(digits) != SEQUENCE_DIGITS or not (digits.isascii() and digits.isdecimal()):
        return -1
    number = int(digits)
    return number if number < 2**31 else -1


def parents(path: str) -> list[str]:
    """All ancestors that must be there before the path can be made, from the top."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]


def is_valid(path: str) -> bool:
    """Whether ZooKeeper accepts the path: no empty, ``.`` or ``..`` parts, no control characters."""
    steps = path.split("/")[1:]
    return not any(step in ("", ".", "..") for step in steps) and not any(map(_is_odd, path))


def _is_odd(character: str) -> bool:
    return character <= "\x1f" or "\x7f" <= character <= "\x9f" or "\ud800" <= character <= "\uf8ff"
