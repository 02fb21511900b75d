"""Spoiled files of a keeper: what it reads was written, or it refuses; nothing else."""

from __future__ import annotations

import os
from random import Random

import pytest

from ottla.keeper.files.errors import FilesRefused
from ottla.storage.disk.crash_disk import CrashDisk
from ottla.zookeeper.server.log_format import MalformedEntry, body_size, decode_entry, encode_entry
from ottla.zookeeper.server.snapshot_format import MalformedSnapshot, SnapshotEncoder, decode_snapshot
from ottla.zookeeper.server.txn_codec import encode_txn
from support.keeper.life import DIRECTORY, opened
from support.keeper.reference_tree import ReferenceTree, State
from support.keeper.script import Script
from support.keeper.sealed import sealed, sealed_snapshot
from support.wire.mutations import mutated

TIMES = int(os.environ.get("OTTLA_FUZZ_N", "4000"))
SEED = os.environ.get("OTTLA_FUZZ_SEED", "keeper")
HOME = f"{DIRECTORY}/version-2"
TXNS = 60

pytestmark = pytest.mark.slow


def a_stopped_keeper() -> tuple[CrashDisk, dict[int, State]]:
    """A directory with snapshots and logs, each entry synced alone, and all the states that there were."""
    disk = CrashDisk(Random(0))
    disk.make_directory("/disk")
    files, tree = opened(disk, snapshot_every=25)
    states = {0: tree.state()}
    script = Script(tree, Random(0))
    for _ in range(TXNS):
        files.append(*script.next())
        files.sync()
        states[script.zxid] = tree.state()
        if files.is_snapshot_due:
            files.begin_snapshot(script.zxid, dict(tree.sessions), tree.walk())
        files.write_some(7)
    files.close()
    return disk, states


def spoiled(disk: CrashDisk, random: Random, *, flips_one_bit: bool) -> CrashDisk:
    machine = disk.clone(Random(0))
    path = f"{HOME}/{random.choice(machine.list_directory(HOME)).name}"
    content = machine.read_file(path)
    if flips_one_bit:
        place = random.randrange(len(content))
        flipped = content[place] ^ (1 << random.randrange(8))
        content = content[:place] + bytes([flipped]) + content[place + 1 :]
    else:
        content = mutated(random, content)
    machine.write_file(path, content)
    return machine


@pytest.mark.parametrize("flips_one_bit", [True, False], ids=["a flipped bit", "any mutation"])
def test_spoiled_file_is_refused_or_leads_to_a_state_that_there_was(flips_one_bit: bool) -> None:
    disk, states = a_stopped_keeper()
    random = Random(SEED)
    refusals = 0
    for _ in range(TIMES // 10):
        try:
            files, tree = opened(spoiled(disk, random, flips_one_bit=flips_one_bit))
        except FilesRefused:
            refusals += 1
            continue
        assert tree.state() == states[files.last_zxid]
        assert files.last_zxid >= TXNS - 1 or not flips_one_bit, "more was cut than could be torn"
    assert 0 < refusals < TIMES // 10


def test_mutated_entry_with_a_right_checksum_is_read_or_malformed() -> None:
    random = Random(SEED)
    tree = _a_tree()
    script = Script(tree, random)
    bodies = [encode_txn(*script.next()) for _ in range(300)]
    for number in range(TIMES):
        content = sealed(mutated(random, bodies[number % len(bodies)]))
        try:
            entry = decode_entry(content[:12], content[12 : 12 + body_size(content[:12])])
        except MalformedEntry:
            continue
        assert encode_entry(entry.header, entry.txn, 0)


def test_mutated_snapshot_with_a_right_checksum_is_read_or_malformed() -> None:
    random = Random(SEED)
    tree = _a_tree()
    script = Script(tree, random)
    for _ in range(30):
        script.next()
    encoder = SnapshotEncoder(tree.sessions, {node.acl for node in tree.walk()})
    content = encoder.start() + encoder.nodes(list(tree.walk()))
    for _ in range(TIMES):
        try:
            snapshot = decode_snapshot(sealed_snapshot(mutated(random, content)))
            assert all(node.path for node in snapshot.nodes)
        except MalformedSnapshot:
            continue


def _a_tree() -> ReferenceTree:
    _, states = a_stopped_keeper()
    tree = ReferenceTree()
    for node in states[0][1].values():
        tree.add(node)
    return tree
