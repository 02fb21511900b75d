"""The same operations by our client and by kazoo, on one real server: the same answers, the same errors."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, Id

from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.zookeeper.ops import (
    ANY_VERSION,
    CREATOR_ALL,
    OPEN,
    READ_BY_ALL,
    Acl,
    AclFound,
    AclSet,
    Check,
    Checked,
    Children,
    Create,
    Created,
    Data,
    DataSet,
    Delete,
    Deleted,
    Exists,
    Failed,
    Found,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiDone,
    MultiFailed,
    MultiRead,
    Op,
    Result,
    SetAcl,
    SetData,
    Stat,
    Sync,
    Synced,
    WriteOp,
    digest_identity,
)
from support.zookeeper.chroots import Chroot

pytestmark = [pytest.mark.java, pytest.mark.slow]

LOGIN = ("digest", b"alice:secret")
ACLS = [OPEN, READ_BY_ALL, CREATOR_ALL, (Acl(31, "digest", digest_identity("alice", "secret")),)]
PATHS = ["/a", "/b", "/a/x", "/a/y", "/a/x/deep", "/none/child"]


def comparable(stat: Stat | ZnodeStat) -> tuple[Any, ...]:
    """A stat without transaction numbers and times, which differ between two chroots."""
    if isinstance(stat, ZnodeStat):
        return (
            *(stat.version, stat.cversion, stat.aversion),
            *(stat.ephemeralOwner != 0, stat.dataLength, stat.numChildren),
        )
    return (
        *(stat.version, stat.cversion, stat.aversion),
        *(stat.ephemeral_owner != 0, stat.data_length, stat.num_children),
    )


def seen_by_us(result: Result) -> Any:
    match result:
        case Created():
            return "created", result.path, comparable(result.stat)
        case Deleted() | Checked() | Synced():
            return "done"
        case DataSet() | AclSet() | Found():
            return "stat", comparable(result.stat)
        case Data():
            return "data", result.data, comparable(result.stat)
        case Children():
            return "children", sorted(result.names), result.stat and comparable(result.stat)
        case AclFound():
            return "acl", sorted((e.permissions, e.scheme, e.identity) for e in result.acl)
        case MultiDone():
            return [seen_by_us(each) for each in result.results]
        case MultiFailed():
            return "refused", [int(each.code) for each in result.results]
        case Failed():
            return "refused", int(result.code)
    return result


def in_kazoo(acl: tuple[Acl, ...]) -> list[ACL]:
    return [ACL(e.permissions, Id(e.scheme, e.identity)) for e in acl]


def by_kazoo(client: KazooClient, op: Op) -> Any:
    """Do it with kazoo and say the outcome in the same words."""
    try:
        match op:
            case Create():
                path, stat = client.create(
                    op.path,
                    op.data,
                    in_kazoo(op.acl),
                    ephemeral=op.ephemeral,
                    sequence=op.sequential,
                    include_data=True,
                )
                return "created", path, comparable(stat)
            case Delete():
                client.delete(op.path, int(op.version))
                return "done"
            case SetData():
                return "stat", comparable(client.set(op.path, op.data, int(op.version)))
            case Exists():
                stat = client.exists(op.path)
                return ("refused", -101) if stat is None else ("stat", comparable(stat))
            case GetData():
                data, stat = client.get(op.path)
                return "data", data, comparable(stat)
            case GetChildren():
                names, stat = client.get_children(op.path, include_data=True)
                return "children", sorted(names), comparable(stat)
            case GetAcl():
                acl, _ = client.get_acls(op.path)
                return "acl", sorted((e.perms, e.id.scheme, e.id.id) for e in acl)
            case SetAcl():
                return "stat", comparable(client.set_acls(op.path, in_kazoo(op.acl), int(op.version)))
            case Sync():
                client.sync(op.path)
                return "done"
            case Multi():
                return multi_by_kazoo(client, op)
    except KazooException as refusal:
        return "refused", refusal.code
    raise AssertionError(op)


def multi_by_kazoo(client: KazooClient, op: Multi) -> Any:
    transaction = client.transaction()
    for part in op.ops:
        match part:
            case Create():
                transaction.create(part.path, part.data, in_kazoo(part.acl), part.ephemeral, part.sequential)
            case Delete():
                transaction.delete(part.path, int(part.version))
            case SetData():
                transaction.set_data(part.path, part.data, int(part.version))
            case Check():
                transaction.check(part.path, int(part.version))
    outcomes = transaction.commit()
    if any(isinstance(outcome, KazooException) for outcome in outcomes):
        return "refused", [outcome.code for outcome in outcomes]
    words: list[Any] = []
    for part, outcome in zip(op.ops, outcomes, strict=True):
        if isinstance(part, Create):
            words.append(("created", outcome))
        else:
            words.append(("stat", comparable(outcome)) if isinstance(part, SetData) else "done")
    return words


def without_stat_of_creates(words: Any) -> Any:
    """kazoo's transactions tell no stat of what they made."""
    return (
        [word[:2] if word[0] == "created" else word for word in words] if isinstance(words, list) else words
    )


@pytest.fixture
def pair(zookeeper: Chroot) -> Iterator[tuple[BlockingZooKeeper, KazooClient]]:
    """Our client and kazoo, in two chroots of the same server, with the same login."""
    root = KazooClient(zookeeper.connect)
    root.start()
    root.create("/ours")
    root.create("/kazoo")
    other = KazooClient(zookeeper.connect + "/kazoo", auth_data=[(LOGIN[0], LOGIN[1].decode())])
    other.start()
    try:
        with BlockingZooKeeper(zookeeper.connect + "/ours", auth=[LOGIN]) as ours:
            yield ours, other
    finally:
        for client in (root, other):
            client.stop()
            client.close()


def a_write(rng: random.Random) -> WriteOp:
    path = rng.choice(PATHS)
    version = rng.choice([0, 1, 2, ANY_VERSION, ANY_VERSION])
    kind = rng.randrange(4)
    if kind == 0:
        return Create(
            path, rng.randbytes(rng.randrange(9)), rng.random() < 0.2, rng.random() < 0.2, rng.choice(ACLS)
        )
    if kind == 1:
        return Delete(path, version)
    if kind == 2:
        return SetData(path, rng.randbytes(rng.randrange(9)), version)
    return Check(path, version)


def an_operation(rng: random.Random) -> Op:
    path = rng.choice([*PATHS, "/"])
    choices: list[Callable[[], Op]] = [
        lambda: GetData(path),
        lambda: Exists(path),
        lambda: GetChildren(path),
        lambda: GetAcl(path),
        lambda: SetAcl(
            rng.choice(PATHS),
            rng.choice([*ACLS, (), (Acl(31, "unknown", "x"),)]),
            rng.choice([0, 1, ANY_VERSION]),
        ),
        lambda: Sync(path),
        lambda: Multi(tuple(a_write(rng) for _ in range(rng.randrange(1, 4)))),
        lambda: a_write(rng),
        lambda: a_write(rng),
        lambda: a_write(rng),
    ]
    return rng.choice(choices)()


@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_operations_has_the_outcomes_that_kazoo_gets(
    pair: tuple[BlockingZooKeeper, KazooClient], seed: int, long_form: bool
) -> None:
    ours, other = pair
    rng = random.Random(seed)
    kinds: set[str] = set()

    for number in range(3_000 if long_form else 250):
        op = an_operation(rng)
        if isinstance(op, Check):
            op = Multi((op,))
        mine = seen_by_us(ours.run(op))
        theirs = by_kazoo(other, op)
        if isinstance(op, Multi):
            mine = without_stat_of_creates(mine)
        assert mine == theirs, f"operation {number}: {op}"
        kinds.add(f"{type(op).__name__} {'refused' if 'refused' in mine else 'done'}")

    assert len(kinds) > 12, f"the sequence met too few outcomes: {sorted(kinds)}"


def test_many_reads_have_the_results_of_single_ones(pair: tuple[BlockingZooKeeper, KazooClient]) -> None:
    ours, _ = pair
    for number in range(50):
        ours.create(f"/n{number:02}", b"x" * number, acl=CREATOR_ALL if number % 7 else OPEN)
    reads = [op for n in range(60) for op in (GetData(f"/n{n:02}"), GetChildren(f"/n{n:02}"))]

    outcome = ours.run(MultiRead(tuple(reads)))

    assert isinstance(outcome, MultiDone)
    for op, result in zip(reads, outcome.results, strict=True):
        single = ours.run(op)
        if isinstance(single, Children):
            single = Children(single.names, None)
        assert result == single


def test_an_ephemeral_node_belongs_to_our_session_and_ends_with_it(zookeeper: Chroot) -> None:
    other = KazooClient(zookeeper.connect)
    other.start()
    try:
        with BlockingZooKeeper(zookeeper.connect) as ours:
            ours.create("/e", b"", ephemeral=True)
            stat = other.exists("/e")
            assert stat is not None
            assert stat.ephemeralOwner == ours.session_id
        assert other.exists("/e") is None
    finally:
        other.stop()
        other.close()


def test_a_login_of_kazoo_is_a_login_of_ours_and_a_wrong_password_is_refused(zookeeper: Chroot) -> None:
    other = KazooClient(zookeeper.connect, auth_data=[("digest", "alice:secret")])
    other.start()
    try:
        other.create("/private", b"1", acl=[ACL(31, Id("auth", ""))])
    finally:
        other.stop()
        other.close()

    with BlockingZooKeeper(zookeeper.connect, auth=[LOGIN]) as alice:
        assert alice.get("/private").data == b"1"
    with BlockingZooKeeper(zookeeper.connect, auth=[("digest", b"alice:wrong")]) as mallory:
        assert seen_by_us(mallory.run(GetData("/private"))) == ("refused", -102)


def test_a_node_made_without_data_has_none(pair: tuple[BlockingZooKeeper, KazooClient]) -> None:
    ours, _ = pair
    ours.create("/null")
    ours.create("/empty", b"")

    assert (ours.get("/null").data, ours.get("/empty").data) == (None, b"")
