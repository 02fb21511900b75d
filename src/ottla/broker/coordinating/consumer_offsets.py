"""``__consumer_offsets``: the internal topic of the group coordinator."""

from random import Random
from uuid import UUID

from ottla.broker.coordinating.internal_topic import InternalTopic
from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GroupShard
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import OFFSETS_TOPIC


def consumer_offsets(config: GroupConfig, random: Random) -> InternalTopic[GroupShard]:
    """The topic with the settings of this broker."""

    def new_uuid() -> str:
        return str(UUID(int=random.getrandbits(128), version=4))

    return InternalTopic(
        name=OFFSETS_TOPIC,
        new_shard=lambda: GroupShard(config, new_uuid),
        partitions_planned=config.offsets_topic_num_partitions,
        append_acks=config.offsets_commit_required_acks,
        append_timeout_ms=config.offsets_commit_timeout_ms,
        invalid_key=ErrorCode.INVALID_GROUP_ID,
    )
