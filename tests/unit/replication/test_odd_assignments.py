"""What a controller may say in the middle of a reassignment, and what a leader must not make of it."""

from ottla.replication.effects import HighWatermarkAdvanced, ProposeIsr
from unit.replication.builders import (
    EVERYONE,
    FAST,
    LAG_TIME_MAX_MS,
    LEADER,
    OUTSIDER,
    SLOW,
    a_leader,
    an_election,
)


def test_an_isr_member_that_is_no_replica_stops_nothing_and_is_let_go() -> None:
    """KAFKA-9672: Kafka's controller sends ids outside of the replicas while a reassignment ends.

    Nobody outside of the replicas can be elected, so the watermark need not wait for it.
    """
    leader = a_leader(isr=(LEADER, FAST, OUTSIDER), replicas=(LEADER, FAST))
    leader.appended(10, 0, EVERYONE)

    effects = leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)

    assert [effect.to for effect in effects if isinstance(effect, HighWatermarkAdvanced)] == [10]
    [proposal] = leader.check_lag(LAG_TIME_MAX_MS + 1)
    assert isinstance(proposal, ProposeIsr)
    assert proposal.isr == (LEADER, FAST)


def test_a_new_list_of_replicas_never_leaves_the_watermark_to_nobody() -> None:
    """KAFKA-10301: the followers' progress is replaced by the new list, not emptied and filled again."""
    leader = a_leader(end_offset=10, high_watermark=4)
    leader.follower_fetched(FAST, 10, 0, 1, EVERYONE)
    leader.follower_fetched(SLOW, 4, 0, 1, EVERYONE)

    effects = leader.elected(
        an_election(
            epoch=6,
            partition_epoch=1,
            isr=(LEADER, FAST, SLOW),
            replicas=(LEADER, FAST, SLOW, OUTSIDER),
            adding=(OUTSIDER,),
            end_offset=10,
            high_watermark=4,
        ),
        2,
        EVERYONE | {OUTSIDER},
    )

    advanced = [effect.to for effect in effects if isinstance(effect, HighWatermarkAdvanced)]
    assert all(offset <= 4 for offset in advanced), "the slow member has no more than that"
    assert leader.high_watermark == 4
