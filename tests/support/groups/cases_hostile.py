"""What no honest client says: far too much of everything, and generations that nobody has seen.

Not asked, because Apache never answers: a join that offers the same protocol twice.
"""

from __future__ import annotations

from ottla.wire.apis import offset_commit as oc
from support.groups.cases_members import describe
from support.groups.conversation import OTHER_TOPIC, TOPIC, Cases, Talk, protocol, subscription

CASES = Cases()
MORE_THAN_A_BATCH_HOLDS = 1_100_000
LONGEST_NAME = 32_767
MAX_I32, MAX_I64 = 2**31 - 1, 2**63 - 1


@CASES.add
def an_assignment_too_large_for_the_log(talk: Talk) -> None:
    a = talk.first_member()
    talk.sync(a.member_id, a.generation_id, {a.member_id: b"x" * MORE_THAN_A_BATCH_HOLDS})
    describe(talk)
    talk.heartbeat(a.member_id, a.generation_id)
    again = talk.join(a.member_id)
    talk.sync(a.member_id, again.generation_id, {a.member_id: b"small"})
    describe(talk)


@CASES.add
def a_subscription_too_large_for_the_log(talk: Talk) -> None:
    large = subscription(TOPIC, user_data=b"x" * MORE_THAN_A_BATCH_HOLDS)
    a = talk.first_member(protocols=[protocol("range", large)])
    talk.sync(a.member_id, a.generation_id, {a.member_id: b"small"})
    talk.heartbeat(a.member_id, a.generation_id)
    talk.join(a.member_id)
    talk.commit({(TOPIC, 0): 5}, a.member_id, a.generation_id)


@CASES.add
def a_commit_too_large_for_the_log(talk: Talk) -> None:
    rows = [
        oc.OffsetCommitRequestPartition(
            partition_index=number % 3, committed_offset=number, committed_metadata="x" * 4_000
        )
        for number in range(300)
    ]
    topics = [oc.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    talk.ask(oc.OffsetCommitRequest(group_id=talk.group, topics=topics), 9)
    talk.fetch({TOPIC: (0, 1, 2)})


@CASES.add
def a_partition_committed_twice_in_one_request(talk: Talk) -> None:
    rows = [
        oc.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset) for offset in (9, 4, 7)
    ]
    topics = [
        oc.OffsetCommitRequestTopic(name=TOPIC, partitions=rows),
        oc.OffsetCommitRequestTopic(name=OTHER_TOPIC, partitions=rows[:1]),
        oc.OffsetCommitRequestTopic(name=TOPIC, partitions=rows[:1]),
    ]
    talk.ask(oc.OffsetCommitRequest(group_id=talk.group, topics=topics), 9)
    talk.fetch(None)


@CASES.add
def names_as_long_as_they_can_be(talk: Talk) -> None:
    talk.group = "g" * LONGEST_NAME
    talk.commit({(TOPIC, 0): 5})
    talk.fetch({TOPIC: (0,)})
    a = talk.stable(group_instance_id="i" * 300)
    describe(talk)
    talk.heartbeat(a.member_id, a.generation_id, group_instance_id="i" * 300)


@CASES.add
def generations_ahead_of_time(talk: Talk) -> None:
    a = talk.stable()
    for generation in (a.generation_id + 1, MAX_I32, -2, -MAX_I32):
        talk.heartbeat(a.member_id, generation)
        talk.sync(a.member_id, generation, {a.member_id: b"mine"})
        talk.commit({(TOPIC, 0): 5}, a.member_id, generation)
    talk.fetch(None)
    describe(talk)


@CASES.add
def numbers_at_their_limits(talk: Talk) -> None:
    talk.commit({(TOPIC, 0): MAX_I64, (TOPIC, 1): -MAX_I64, (TOPIC, MAX_I32): 1, (TOPIC, -MAX_I32): 1})
    talk.fetch(None)
    talk.fetch({TOPIC: (MAX_I32, -1)})
    for session_ms, rebalance_ms in ((MAX_I32, 1), (-1, 1), (0, 0)):
        talk.join(session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms)


@CASES.add
def protocols_by_the_hundred(talk: Talk) -> None:
    many = [protocol(f"p{number}", b"m") for number in range(500)]
    a = talk.first_member(protocols=many)
    talk.sync(a.member_id, a.generation_id, {a.member_id: b"all"}, protocol_name=a.protocol_name)
    describe(talk)
