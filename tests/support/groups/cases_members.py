"""Joining, syncing, beating and leaving: every version and every refusal.

Not asked, because Apache does not answer or dies of it while Ottla answers: a join or sync that the same
member repeats (Apache drops the first), metadata whose inner lengths are wrong, an id of MEMBER_ID_REQUIRED
used with an instance id. Not compared: a refused first join leaves an empty group behind at Apache.
"""

from __future__ import annotations

from typing import Any

from ottla.wire.apis import describe_groups as dg
from ottla.wire.apis import heartbeat as hb
from ottla.wire.apis import join_group as jg
from ottla.wire.apis import leave_group as lg
from ottla.wire.apis import sync_group as sg
from support.groups.conversation import TOPIC, Cases, Talk, protocol, share, subscription

CASES = Cases()
JOIN_VERSIONS, SYNC_VERSIONS, BEAT_VERSIONS, LEAVE_VERSIONS = range(10), range(6), range(5), range(6)


def describe(talk: Talk, version: int = 5) -> None:
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group,)), version, by="watch")


@CASES.add_for(*JOIN_VERSIONS)
def the_whole_life_in_version(talk: Talk, version: int) -> None:
    joined = talk.first_member(version)
    sync_version = min(version, 5)
    member, generation = joined.member_id, joined.generation_id
    describe(talk)
    talk.sync(member, generation, {member: share(TOPIC, 0)}, version=sync_version)
    talk.sync(member, generation, version=sync_version)
    talk.heartbeat(member, generation, version=min(version, 4))
    describe(talk)
    talk.join(member, version)
    describe(talk)
    talk.leave(member, version=min(version, 5))
    talk.heartbeat(member, generation, version=min(version, 4))
    describe(talk)


@CASES.add_for(*JOIN_VERSIONS)
def joins_that_are_refused_in_version(talk: Talk, version: int) -> None:
    talk.join(version=version, group_id="")
    talk.join(version=version, session_timeout_ms=5)
    talk.join(version=version, session_timeout_ms=1_800_001)
    talk.join(version=version, session_timeout_ms=-1)
    talk.join("nobody", version)
    talk.join("nobody", version, protocols=[])
    describe(talk)
    talk.join(version=version, protocols=[])
    talk.join(version=version, protocol_type="")
    member = talk.stable()
    talk.join("nobody", version)
    talk.join(version=version, protocols=[protocol("other")])
    talk.join(version=version, protocol_type="connect")
    talk.join(version=version, protocols=[])
    talk.join(member.member_id, version, protocols=[protocol("range", b"changed")], protocol_type="connect")
    talk.join(version=version, group_id="", member_id=member.member_id)


@CASES.add_for(*JOIN_VERSIONS)
def a_follower_joins_again_unchanged_in_version(talk: Talk, version: int) -> None:
    _, b = talk.pair()
    talk.join(b.member_id, version)
    talk.heartbeat(b.member_id, b.generation_id)
    describe(talk)


@CASES.add_for(*JOIN_VERSIONS)
def the_leader_joins_again_in_version(talk: Talk, version: int) -> None:
    a, b = talk.pair()
    talk.send(talk.join_request(a.member_id), version)
    talk.heartbeat_until(b.member_id, b.generation_id, 27)
    describe(talk)
    talk.sync(b.member_id, b.generation_id, by="b")
    talk.heartbeat(a.member_id, a.generation_id, by="b")
    talk.join(b.member_id, version, by="b")
    talk.take("a")
    describe(talk)


@CASES.add
def a_follower_joins_again_changed(talk: Talk) -> None:
    a, b = talk.pair()
    changed: dict[str, Any] = {"protocols": [protocol("range", subscription(TOPIC, "more"))]}
    talk.send(talk.join_request(b.member_id, **changed), 9, "b")
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    talk.join(a.member_id)
    talk.take("b")


@CASES.add
def a_join_that_waits_is_replaced_by_another_of_the_same_member(talk: Talk) -> None:
    a, b = talk.pair()
    talk.send(talk.join_request(a.member_id), 9)
    talk.heartbeat_until(b.member_id, b.generation_id, 27)
    talk.send(talk.join_request(a.member_id), 9, "again")
    talk.join(b.member_id, by="b")
    talk.take("again")


@CASES.add
def in_completing_members_join_again(talk: Talk) -> None:
    a = talk.first_member()
    talk.join(a.member_id)
    talk.heartbeat(a.member_id, a.generation_id)
    describe(talk)
    talk.join(a.member_id, protocols=[protocol("range", subscription(TOPIC, "more"))])
    describe(talk)


@CASES.add
def an_id_of_79_is_given_up_by_leaving(talk: Talk) -> None:
    given = talk.join()
    describe(talk)
    talk.heartbeat(given.member_id, -1)
    talk.heartbeat(given.member_id, 0)
    talk.sync(given.member_id, 0)
    talk.commit({(TOPIC, 0): 5}, given.member_id, 0)
    talk.leave(given.member_id)
    talk.leave(given.member_id)
    describe(talk)


@CASES.add
def an_id_of_79_is_given_up_by_whatever_instance(talk: Talk) -> None:
    given = talk.join()
    for member_id in (given.member_id, given.member_id, ""):
        leaving = [lg.MemberIdentity(member_id=member_id, group_instance_id="who")]
        talk.ask(lg.LeaveGroupRequest(group_id=talk.group, members=leaving), 5)


@CASES.add
def a_group_that_gathers_keeps_its_kind_though_its_last_member_has_left(talk: Talk) -> None:
    connect: dict[str, Any] = {"protocol_type": "connect", "protocols": [protocol("eager", b"x")]}
    a = talk.stable(**connect)
    talk.join(by="b", **connect)
    talk.send(talk.join_request(a.member_id, **connect), 9)
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    leaving = [lg.MemberIdentity(member_id=a.member_id)]
    talk.ask(lg.LeaveGroupRequest(group_id=talk.group, members=leaving), 5, by="watch")
    talk.take()
    describe(talk)
    talk.join(by="c")
    talk.join(by="c", protocol_type="connect")


@CASES.add
def an_id_of_79_unused_for_the_session_is_unknown(talk: Talk) -> None:
    given = talk.join(session_timeout_ms=1_000)
    talk.heartbeat_until(given.member_id, 0, 25)
    other = talk.stable()
    talk.heartbeat(other.member_id, other.generation_id)


@CASES.add
def the_vote_goes_to_what_all_speak(talk: Talk) -> None:
    offers = [protocol("sticky", b"s"), protocol("range", b"r")]
    one = talk.first_member(protocols=offers)
    talk.sync(one.member_id, one.generation_id, protocol_name="sticky")
    given = talk.join(by="b", protocols=[protocol("range", b"r2")])
    talk.send(talk.join_request(given.member_id, protocols=[protocol("range", b"r2")]), 9, "b")
    talk.heartbeat_until(one.member_id, one.generation_id, 27)
    talk.join(one.member_id, protocols=offers)
    talk.take("b")
    describe(talk)


@CASES.add
def ids_of_79_do_not_count_as_members(talk: Talk) -> None:
    talk.pair()
    third = talk.join(by="c")
    talk.send(talk.join_request(third.member_id), 9, "c")
    for _ in range(3):
        talk.join(by="d")
    describe(talk)


@CASES.add
def groups_full_of_members_take_no_more(talk: Talk) -> None:
    a, b = talk.pair()
    third = talk.join(by="c")
    talk.send(talk.join_request(third.member_id), 9, "c")
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    talk.send(talk.join_request(a.member_id), 9)
    talk.heartbeat(a.member_id, a.generation_id, by="b")
    joined = talk.join(b.member_id, by="b")
    talk.take("a")
    talk.take("c")
    for version in JOIN_VERSIONS:
        talk.join(version=version, by="d")
    talk.join("nobody", by="d")
    talk.heartbeat(b.member_id, joined.generation_id, by="b")


@CASES.add_for(*SYNC_VERSIONS)
def syncs_that_are_refused_in_version(talk: Talk, version: int) -> None:
    talk.sync("nobody", 1, version=version)
    talk.sync("nobody", 1, version=version, group_id="")
    a = talk.first_member()
    member, generation = a.member_id, a.generation_id
    for number in (-1, generation - 1, generation + 1, 2**31 - 1):
        talk.sync(member, number, version=version)
    talk.sync("nobody", generation, version=version)
    talk.sync(member, generation, version=version, protocol_type="connect") if version == 5 else None
    talk.sync(member, generation, version=version, protocol_name="sticky") if version == 5 else None
    if version == 5:
        talk.sync(member, generation, version=version, protocol_name=None)
        talk.sync(member, generation, version=version, protocol_type=None)
    talk.sync(member, generation, {member: b"garbage", "stranger": b"x"}, version=version)
    talk.sync(member, generation, {member: b"other"}, version=version)
    describe(talk)


@CASES.add
def members_the_leader_forgot_get_nothing(talk: Talk) -> None:
    one = talk.stable()
    given = talk.join(by="b")
    talk.send(talk.join_request(given.member_id), 9, "b")
    talk.heartbeat_until(one.member_id, one.generation_id, 27)
    a = talk.join(one.member_id)
    b = talk.take("b")
    talk.sync(a.member_id, a.generation_id, {})
    talk.sync(b.member_id, b.generation_id, {b.member_id: b"mine"}, by="b")
    describe(talk)


@CASES.add
def a_sync_that_waits_is_replaced_by_another_and_ends_with_a_rebalance(talk: Talk) -> None:
    a, b = talk.pair()
    talk.send(talk.join_request(a.member_id), 9)
    talk.heartbeat_until(b.member_id, b.generation_id, 27)
    b = talk.join(b.member_id, by="b")
    a = talk.take("a")
    talk.send(talk.sync_request(b.member_id, b.generation_id), 5, "b")
    talk.send(talk.sync_request(b.member_id, b.generation_id), 5, "again")
    talk.commit({(TOPIC, 0): 3}, b.member_id, b.generation_id)
    talk.leave(a.member_id)
    talk.take("again")
    describe(talk)


@CASES.add_for(*BEAT_VERSIONS)
def heartbeats_that_are_refused_in_version(talk: Talk, version: int) -> None:
    talk.ask(hb.HeartbeatRequest(group_id="", member_id="x"), version)
    talk.heartbeat("nobody", 1, version)
    a = talk.first_member()
    talk.heartbeat(a.member_id, a.generation_id, version)
    talk.heartbeat(a.member_id, a.generation_id + 1, version)
    talk.heartbeat(a.member_id, a.generation_id - 1, version)
    talk.heartbeat(a.member_id, -1, version)
    talk.heartbeat("nobody", a.generation_id, version)
    talk.heartbeat("", a.generation_id, version)


@CASES.add_for(*LEAVE_VERSIONS)
def leaving_in_version(talk: Talk, version: int) -> None:
    talk.leave("nobody", version=version)
    member: dict[str, Any] = (
        {"member_id": "x"} if version < 3 else {"members": [lg.MemberIdentity(member_id="x")]}
    )
    talk.ask(lg.LeaveGroupRequest(group_id="", **member), version)
    a, b = talk.pair()
    talk.leave("nobody", version=version)
    talk.leave(b.member_id, version=version)
    talk.leave(b.member_id, version=version)
    talk.heartbeat(a.member_id, a.generation_id)
    describe(talk)
    talk.leave(a.member_id, version=version)
    describe(talk)


@CASES.add_for(3, 4, 5)
def several_leave_at_once_in_version(talk: Talk, version: int) -> None:
    a, b = talk.pair()
    talk.leave(a.member_id, "nobody", b.member_id, b.member_id, version=version, instances=("who",))
    talk.leave(version=version)
    describe(talk)


@CASES.add_for(5, 6, 7, 8, 9)
def a_static_leader_returns_in_version(talk: Talk, version: int) -> None:
    one: dict[str, Any] = {"group_instance_id": "one"}
    a = talk.stable(version, **one)
    back = talk.join(version=version, **one)
    describe(talk)
    old, new, generation = a.member_id, back.member_id, a.generation_id
    talk.join(old, version, **one)
    talk.sync(old, generation, **one)
    talk.heartbeat(old, generation, **one)
    talk.commit({(TOPIC, 0): 3}, old, generation, **one)
    talk.heartbeat(old, generation)
    talk.heartbeat(old, generation, group_instance_id="two")
    talk.heartbeat(new, generation, **one)
    talk.heartbeat(new, generation)
    talk.sync(new, generation, **one)
    talk.commit({(TOPIC, 0): 3}, new, generation, **one)
    talk.commit({(TOPIC, 0): 3}, new, generation, group_instance_id="two")
    talk.commit({(TOPIC, 0): 3}, new, -1, **one)
    talk.join(new, version, **one)
    describe(talk)
    talk.leave(instances=("one", "two"))
    describe(talk)


@CASES.add_for(5, 6, 7, 8, 9)
def a_static_follower_returns_in_version(talk: Talk, version: int) -> None:
    two: dict[str, Any] = {"group_instance_id": "two"}
    a = talk.stable()
    talk.send(talk.join_request(**two), version, "b")
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    a = talk.join(a.member_id)
    b = talk.take("b")
    talk.sync(a.member_id, a.generation_id, {b.member_id: share(TOPIC, 1)})
    talk.sync(b.member_id, b.generation_id, by="b", **two)
    back = talk.join(version=version, by="b", **two)
    talk.sync(back.member_id, back.generation_id, by="b", **two)
    talk.sync(b.member_id, back.generation_id, by="b", **two)
    describe(talk)
    talk.join(version=version, by="b", **two, protocols=[protocol("range", b"changed")])
    describe(talk)
    talk.leave(b.member_id)


@CASES.add
def a_static_member_returns_with_another_protocol(talk: Talk) -> None:
    one: dict[str, Any] = {"group_instance_id": "one"}
    a = talk.stable(**one)
    talk.join(**one, protocols=[protocol("sticky", b"x")])
    talk.join(**one, protocols=[protocol("sticky", b"x"), protocol("range", b"y")])
    describe(talk)
    talk.heartbeat(a.member_id, a.generation_id, **one)


@CASES.add
def a_static_member_returns_while_its_group_completes(talk: Talk) -> None:
    one: dict[str, Any] = {"group_instance_id": "one"}
    a = talk.first_member(**one)
    b = talk.join(**one)
    talk.sync(a.member_id, a.generation_id, **one)
    talk.sync(b.member_id, b.generation_id, {b.member_id: b"all"}, **one)
    describe(talk)


@CASES.add
def a_static_member_returns_while_its_join_waits(talk: Talk) -> None:
    a = talk.stable()
    two: dict[str, Any] = {"group_instance_id": "two"}
    talk.send(talk.join_request(**two), 9, "b")
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    talk.send(talk.join_request(**two), 9, "c")
    talk.take("b")
    talk.join(a.member_id)
    talk.take("c")


@CASES.add
def a_static_member_with_a_strange_id(talk: Talk) -> None:
    talk.join("strange", group_instance_id="one")
    talk.stable(group_instance_id="one")
    talk.join("strange", group_instance_id="one")
    talk.join("strange", group_instance_id="two")
    for name in ("", ".", "a b", "x" * 250):
        talk.join(group_instance_id=name, protocols=[protocol("other")])


@CASES.add
def a_silent_member_is_removed_after_its_session(talk: Talk) -> None:
    a = talk.stable(session_timeout_ms=3_000)
    talk.heartbeat(a.member_id, a.generation_id)
    given = talk.join(by="b")
    talk.join(given.member_id, by="b")
    talk.heartbeat(a.member_id, a.generation_id)
    describe(talk)


@CASES.add
def a_member_that_never_syncs_is_removed_after_the_rebalance_timeout(talk: Talk) -> None:
    quick: dict[str, Any] = {"rebalance_timeout_ms": 4_000}
    a = talk.stable(**quick)
    given = talk.join(by="b", **quick)
    talk.send(talk.join_request(given.member_id, **quick), 9, "b")
    talk.heartbeat_until(a.member_id, a.generation_id, 27)
    a = talk.join(a.member_id, **quick)
    b = talk.take("b")
    talk.sync(a.member_id, a.generation_id, {})
    talk.heartbeat(b.member_id, b.generation_id)
    talk.heartbeat_until(b.member_id, b.generation_id, 25)
    talk.heartbeat(a.member_id, a.generation_id)
    describe(talk)


@CASES.add
def a_member_that_does_not_come_back_is_left_behind(talk: Talk) -> None:
    quick: dict[str, Any] = {"rebalance_timeout_ms": 3_000}
    a = talk.stable(**quick)
    given = talk.join(by="b", **quick)
    b = talk.join(given.member_id, by="b", **quick)
    talk.heartbeat(a.member_id, a.generation_id)
    describe(talk)
    talk.sync(b.member_id, b.generation_id, {b.member_id: b"all"}, by="b")
    describe(talk)


@CASES.add
def another_kind_of_group(talk: Talk) -> None:
    a = talk.stable(protocol_type="connect", protocols=[protocol("eager", b"\xff\xfe")])
    describe(talk)
    talk.heartbeat(a.member_id, a.generation_id)
    talk.join()
    talk.leave(a.member_id)
    describe(talk)
    talk.stable()
    describe(talk)


@CASES.add
def garbage_for_metadata_and_assignment(talk: Talk) -> None:
    for number, blob in enumerate((b"", b"\0", b"\xff\xff", b"\0\1")):
        talk.group = f"{talk.group}-{number}"
        a = talk.first_member(protocols=[protocol("range", blob)])
        talk.sync(a.member_id, a.generation_id, {a.member_id: blob})
        describe(talk)


@CASES.add
def old_and_new_ids_of_clients(talk: Talk) -> None:
    talk.ask(jg.JoinGroupRequest(group_id=talk.group, session_timeout_ms=6_000), 0)
    talk.ask(sg.SyncGroupRequest(group_id=talk.group), 0)
    talk.ask(hb.HeartbeatRequest(group_id=talk.group), 0)
    talk.ask(lg.LeaveGroupRequest(group_id=talk.group), 0)


@CASES.add
def what_a_member_sends_behind_its_own_join_is_answered_as_of_then(talk: Talk) -> None:
    one = talk.stable()
    given = talk.join(by="b")
    talk.send(talk.join_request(given.member_id), 9, "b")
    talk.send(dg.DescribeGroupsRequest(groups=(talk.group,)), 5, "b")
    talk.send(talk.commit_request({(TOPIC, 0): 5}, given.member_id, 2), 9, "b")
    talk.send(talk.fetch_request({TOPIC: (0,)}), 9, "b")
    talk.heartbeat_until(one.member_id, one.generation_id, 27)
    talk.join(one.member_id)
    for _ in range(4):
        talk.take("b")
