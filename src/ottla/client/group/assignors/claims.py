"""Who owned which partition before, where members disagree."""

from collections.abc import Mapping, Sequence

from ottla.client.group.assignors.protocol import MemberData
from ottla.model.ids import TopicPartition


def owners_before(
    partition_counts: Mapping[str, int], members: Sequence[MemberData]
) -> dict[TopicPartition, str]:
    """The owner of the latest generation, if it still wants the topic; two claims of a generation cancel."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        for tp in dict.fromkeys(member.owned):
            exists = 0 <= tp.partition < partition_counts.get(tp.topic, 0)
            if not exists or tp.topic not in member.topics:
                continue
            generation, _ = claims.get(tp, (None, None))
            if generation is None or member.generation > generation:
                claims[tp] = (member.generation, member.member_id)
            elif member.generation == generation:
                claims[tp] = (generation, None)
    return {tp: owner for tp, (_, owner) in claims.items() if owner is not None}
