"""Commits and what is asked about groups: every version and every refusal."""

from __future__ import annotations

from typing import Any

from ottla.wire.apis import delete_groups as xg
from ottla.wire.apis import describe_groups as dg
from ottla.wire.apis import find_coordinator as fc
from ottla.wire.apis import list_groups as ls
from ottla.wire.apis import offset_commit as oc
from ottla.wire.apis import offset_delete as od
from ottla.wire.apis import offset_fetch as of
from support.groups.conversation import OTHER_TOPIC, TOPIC, Cases, Talk, protocol, subscription

CASES = Cases()
COMMIT_VERSIONS, FETCH_VERSIONS = range(10), range(10)
NOWHERE = "nowhere"
TOO_LONG, LONGEST = "x" * 4097, "x" * 4096


def delete_offsets(talk: Talk, *topics: tuple[str, int], group: str | None = None) -> None:
    rows = [
        od.OffsetDeleteRequestTopic(
            name=topic, partitions=[od.OffsetDeleteRequestPartition(partition_index=partition)]
        )
        for topic, partition in topics
    ]
    name = talk.group if group is None else group
    talk.ask(od.OffsetDeleteRequest(group_id=name, topics=rows), 0)


def delete_groups(talk: Talk, *groups: str, version: int = 2) -> None:
    talk.ask(xg.DeleteGroupsRequest(groups_names=groups), version)


@CASES.add_for(*COMMIT_VERSIONS)
def a_simple_consumer_commits_in_version(talk: Talk, version: int) -> None:
    talk.commit({(TOPIC, 0): 5, (TOPIC, 1): 0, (TOPIC, 2): -7}, version=version, metadata="said")
    talk.commit({(TOPIC, 0): 6, (NOWHERE, 0): 1, (TOPIC, 99): 1, (TOPIC, -1): 1}, version=version)
    talk.commit({(NOWHERE, 0): 1}, version=version)
    talk.commit({}, version=version)
    talk.commit({(TOPIC, 1): 8}, version=version, metadata=None)
    talk.commit({(OTHER_TOPIC, 0): 8}, version=version, metadata=TOO_LONG)
    talk.commit({(OTHER_TOPIC, 1): 8}, version=version, metadata=LONGEST)
    talk.commit({(OTHER_TOPIC, 1): 8}, version=version, metadata="å" * 4096)
    for faces in (2048, 2049):
        talk.commit({(OTHER_TOPIC, 0): 9}, version=version, metadata="😀" * faces)
    talk.fetch(None)
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group,), include_authorized_operations=True), 5)


@CASES.add_for(*COMMIT_VERSIONS)
def commits_that_are_refused_in_version(talk: Talk, version: int) -> None:
    at = {(TOPIC, 0): 5}
    talk.commit(at, "nobody", 1, version)
    talk.commit(at, "nobody", -1, version)
    talk.fetch(None)
    talk.group += "-members"
    a = talk.first_member()
    talk.commit(at, a.member_id, a.generation_id, version)
    talk.commit(at, version=version)
    talk.sync(a.member_id, a.generation_id, {a.member_id: b"all"})
    talk.commit(at, a.member_id, a.generation_id, version)
    talk.commit(at, a.member_id, a.generation_id + 1, version)
    talk.commit(at, a.member_id, a.generation_id - 1, version)
    talk.commit(at, a.member_id, -1, version)
    talk.commit(at, "nobody", a.generation_id, version)
    talk.commit(at, "", a.generation_id, version)
    talk.commit(at, "nobody", -1, version)
    talk.commit(at, version=version)
    talk.commit({(NOWHERE, 0): 1}, "nobody", 3, version)
    talk.commit({(NOWHERE, 0): 1, (TOPIC, 1): 1}, "nobody", 3, version)
    talk.commit({}, "nobody", 3, version)
    talk.fetch(None)


@CASES.add
def commits_of_a_group_without_a_name(talk: Talk) -> None:
    talk.group = ""
    talk.commit({(TOPIC, 0): 5})
    talk.commit({(TOPIC, 0): 5}, "x", 1)
    talk.fetch({TOPIC: (0,)})
    talk.fetch(None)
    delete_offsets(talk, (TOPIC, 0))
    talk.ask(dg.DescribeGroupsRequest(groups=("",)), 5)
    delete_groups(talk, "")
    delete_groups(talk, "")


@CASES.add_for(2, 3, 4)
def a_retention_of_its_own_in_version(talk: Talk, version: int) -> None:
    talk.commit({(TOPIC, 0): 5}, version=version, retention_time_ms=60_000)
    talk.commit({(TOPIC, 1): 5}, version=version, retention_time_ms=0)
    talk.commit({(TOPIC, 2): 5}, version=version, retention_time_ms=-1)
    talk.fetch(None)


@CASES.add
def a_leader_epoch_is_kept(talk: Talk) -> None:
    row = oc.OffsetCommitRequestPartition(partition_index=1, committed_offset=9, committed_leader_epoch=4)
    topics = [oc.OffsetCommitRequestTopic(name=TOPIC, partitions=[row, row])]
    talk.ask(oc.OffsetCommitRequest(group_id=talk.group, topics=topics), 9)
    talk.ask(oc.OffsetCommitRequest(group_id=talk.group, topics=[*topics, *topics]), 9)
    for version in FETCH_VERSIONS:
        talk.fetch({TOPIC: (1, 0)}, version)


@CASES.add_for(*FETCH_VERSIONS)
def fetches_in_version(talk: Talk, version: int) -> None:
    talk.fetch({TOPIC: (0, 1)}, version)
    talk.fetch({NOWHERE: (0,), TOPIC: (99,)}, version)
    talk.fetch({}, version)
    talk.fetch({TOPIC: ()}, version)
    talk.fetch({TOPIC: (0, 0)}, version)
    if version >= 2:
        talk.fetch(None, version)
    talk.commit({(TOPIC, 0): 5, (OTHER_TOPIC, 1): 6}, metadata="m")
    talk.fetch({TOPIC: (0, 1), OTHER_TOPIC: (0, 1)}, version)
    if version >= 2:
        talk.fetch(None, version)
    if version >= 7:
        talk.fetch({TOPIC: (0,)}, version, require_stable=True)
    talk.fetch({TOPIC: (0,)}, version, group="")


@CASES.add
def offsets_of_old_under_any_name(talk: Talk) -> None:
    for name in ("", ".", "..", "a/b", "/", "å b", "\x01"):
        talk.group = name
        talk.commit({(TOPIC, 0): 5}, version=0)
        talk.commit({(TOPIC, 0): 6}, version=0)
        talk.fetch({TOPIC: (0, 1)}, 0)


@CASES.add_for(8, 9)
def several_groups_are_fetched_in_version(talk: Talk, version: int) -> None:
    talk.commit({(TOPIC, 0): 5})
    topics = [of.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0, 1))]
    groups = [
        of.OffsetFetchRequestGroup(group_id=talk.group, topics=topics),
        of.OffsetFetchRequestGroup(group_id=f"{talk.group}-other", topics=topics),
        of.OffsetFetchRequestGroup(group_id=talk.group, topics=None),
        of.OffsetFetchRequestGroup(group_id="", topics=None),
    ]
    talk.ask(of.OffsetFetchRequest(groups=groups), version)
    if version >= 9:
        with_member = of.OffsetFetchRequestGroup(
            group_id=talk.group, member_id="x", member_epoch=3, topics=topics
        )
        talk.ask(of.OffsetFetchRequest(groups=[with_member]), version)


@CASES.add
def offsets_are_deleted(talk: Talk) -> None:
    delete_offsets(talk, (TOPIC, 0))
    delete_offsets(talk, (TOPIC, 0), group="")
    talk.commit({(TOPIC, 0): 5, (TOPIC, 1): 5})
    delete_offsets(talk, (TOPIC, 0), (NOWHERE, 0), (TOPIC, 99), (TOPIC, 2))
    delete_offsets(talk, (TOPIC, 0), (TOPIC, 2), (TOPIC, 0))
    talk.fetch(None)
    delete_offsets(talk)
    delete_offsets(talk, (TOPIC, 1))
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group,)), 5)
    delete_offsets(talk, (TOPIC, 1))


@CASES.add
def offsets_of_groups_with_members_are_deleted(talk: Talk) -> None:
    a = talk.first_member()
    delete_offsets(talk, (TOPIC, 0), (OTHER_TOPIC, 0))
    talk.sync(a.member_id, a.generation_id, {a.member_id: b"all"})
    talk.commit({(TOPIC, 0): 5, (OTHER_TOPIC, 0): 5}, a.member_id, a.generation_id)
    delete_offsets(talk, (TOPIC, 0), (OTHER_TOPIC, 0))
    talk.fetch(None)
    talk.leave(a.member_id)
    delete_offsets(talk, (TOPIC, 0))
    talk.fetch(None)
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group,)), 5)


@CASES.add
def offsets_of_a_group_that_is_no_consumers(talk: Talk) -> None:
    a = talk.stable(protocol_type="connect", protocols=[protocol("eager", b"x")])
    talk.commit({(TOPIC, 0): 5}, a.member_id, a.generation_id)
    delete_offsets(talk, (TOPIC, 0))


@CASES.add
def offsets_of_a_group_whose_metadata_is_garbage(talk: Talk) -> None:
    a = talk.stable(protocols=[protocol("range", b"\0")])
    talk.commit({(TOPIC, 0): 5}, a.member_id, a.generation_id)
    delete_offsets(talk, (TOPIC, 0))
    talk.fetch(None)


@CASES.add_for(1, 3, 9, -1)
def offsets_of_a_group_whose_metadata_is_less_than_its_version_says(talk: Talk, version: int) -> None:
    blob = version.to_bytes(2, "big", signed=True) + subscription(TOPIC)[2:-4]
    a = talk.stable(protocols=[protocol("range", blob)])
    talk.commit({(TOPIC, 0): 5, (OTHER_TOPIC, 0): 5}, a.member_id, a.generation_id)
    delete_offsets(talk, (TOPIC, 0), (OTHER_TOPIC, 0))
    talk.fetch(None)


@CASES.add_for(0, 1, 2)
def groups_are_deleted_in_version(talk: Talk, version: int) -> None:
    name = talk.group
    delete_groups(talk, name, version=version)
    delete_groups(talk, version=version)
    talk.commit({(TOPIC, 0): 5})
    delete_groups(talk, name, f"{name}-unknown", name, version=version)
    delete_groups(talk, name, version=version)
    talk.fetch(None)
    a = talk.first_member()
    delete_groups(talk, name, version=version)
    talk.sync(a.member_id, a.generation_id, {})
    delete_groups(talk, name, version=version)
    talk.leave(a.member_id)
    delete_groups(talk, name, version=version)
    talk.ask(dg.DescribeGroupsRequest(groups=(name,)), 5)
    talk.join(a.member_id)
    talk.stable()


@CASES.add
def a_group_with_only_an_unused_id_is_deleted(talk: Talk) -> None:
    given = talk.join()
    delete_groups(talk, talk.group)
    talk.join(given.member_id)


@CASES.add_for(*range(6))
def groups_are_described_in_version(talk: Talk, version: int) -> None:
    asked: dict[str, Any] = {"include_authorized_operations": True} if version >= 3 else {}
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group, "", "unknown", "unknown"), **asked), version)
    talk.ask(dg.DescribeGroupsRequest(), version)
    talk.pair()
    talk.ask(dg.DescribeGroupsRequest(groups=(talk.group,), **asked), version)


@CASES.add_for(*range(6))
def groups_are_listed_in_version(talk: Talk, version: int) -> None:
    def listed(**filters: Any) -> None:
        answer = talk.ask(ls.ListGroupsRequest(**filters), version)
        del talk.answers[-1]
        rows = [
            (row.group_id, row.protocol_type) for row in answer.groups if row.group_id.startswith(talk.group)
        ]
        more = sorted(
            (row.group_state, row.group_type) for row in answer.groups if row.group_id == talk.group
        )
        talk.answers.append((f"listed {filters}", [answer.error_code, sorted(rows), more]))

    listed()
    talk.commit({(TOPIC, 0): 5})
    listed()
    a = talk.first_member()
    listed()
    talk.sync(a.member_id, a.generation_id, {})
    listed()
    if version >= 4:
        for states in (("stable",), ("STABLE", "Empty"), ("nonsense",), ("PreparingRebalance",), ("",)):
            listed(states_filter=states)
    if version >= 5:
        for types in (("classic",), ("Classic",), ("consumer",), ("nonsense",), ("",), ("unknown",)):
            listed(types_filter=types)
        listed(types_filter=("classic",), states_filter=("Stable",))
    talk.leave(a.member_id)
    listed()


@CASES.add_for(*range(7))
def coordinators_are_found_in_version(talk: Talk, version: int) -> None:
    def found(key_type: int, *keys: str) -> None:
        if version < 4:
            answer = talk.ask(fc.FindCoordinatorRequest(key=keys[0], key_type=key_type), version)
            rows = [answer]
        else:
            answer = talk.ask(fc.FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type), version)
            rows = answer.coordinators
        del talk.answers[-1]
        noted = [(row.error_code, row.node_id, row.host, row.port > 0, row.error_message) for row in rows]
        talk.answers.append((f"found {key_type} {keys}", noted))

    found(0, talk.group)
    found(0, "")
    if version >= 4:
        found(0, "a", "b", "a")
        found(0)
