"""A directory changes hands between Apache's server and the keeper, both ways, after random histories."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from kazoo.client import KazooClient

from ottla.keeper.files.log_reader import LogReader
from ottla.keeper.files.names import Listing, list_files
from ottla.storage.disk.port import OsDisk
from ottla.zookeeper.ops import digest_identity
from ottla.zookeeper.server.snapshot_format import decode_snapshot
from ottla.zookeeper.server.txns import StoredNode
from support.keeper.apache import Clients, apache, run_class, seen_by, shown
from support.keeper.life import opened
from support.keeper.reference_tree import ReferenceTree
from support.keeper.script import Script

VERSIONS = ("3.8", "3.9")
ROUNDS = 3
SUPER = {"zookeeper.DigestAuthenticationProvider.superDigest": digest_identity("super", "secret")}


def files_in(directory: Path) -> Listing:
    return list_files(OsDisk(), str(directory / "version-2"))


def read_by_ours(directory: Path) -> tuple[int, ReferenceTree]:
    files, tree = opened(OsDisk(), directory=str(directory))
    files.close()
    return files.last_zxid, tree


def newest_snapshot(directory: Path) -> tuple[int, dict[int, int], dict[str, StoredNode]]:
    zxid, path = files_in(directory).snapshots[-1]
    snapshot = decode_snapshot(Path(path).read_bytes())
    return zxid, snapshot.sessions, {node.path: node for node in snapshot.nodes}


def write_ours(directory: Path, seed: int, txns: int) -> Script:
    """A random history with fuzzy snapshots, over what is there."""
    files, tree = opened(OsDisk(), 60, str(directory))
    script = Script(tree, Random(seed), files.last_zxid)
    for number in range(txns):
        files.append(*script.next())
        if number % 3 == 0:
            files.sync()
        if files.is_snapshot_due:
            files.begin_snapshot(script.zxid, dict(tree.sessions), tree.walk())
        files.write_some(5)
    files.close()
    return script


def a_client(connect: str) -> KazooClient:
    client = KazooClient(connect)
    client.start()
    client.add_auth("digest", "super:secret")
    return client


@pytest.mark.parametrize("version", VERSIONS)
def test_ours_reads_what_apaches_server_wrote(version: str, tmp_path: Path, long_form: bool) -> None:
    random = Random(version)
    ever: set[int] = set()
    for number in range(ROUNDS if not long_form else 10 * ROUNDS):
        with apache(version, tmp_path, **{"zookeeper.snapCount": "40"}, **SUPER) as server:
            clients = Clients(server.connect, random)
            for _ in range(150):
                clients.act()
            watcher = a_client(server.connect)
            seen, sessions = seen_by(watcher), clients.sessions()
            ever |= {watcher.client_id[0], *sessions}
            if number % 2:
                server.kill()
            else:
                server.stop()
        for client in (watcher, *clients.open):
            client.stop()
            client.close()
        last_zxid, tree = read_by_ours(tmp_path)

        assert shown(tree.state()[1]) == seen
        assert sessions.items() <= tree.sessions.items()
        assert set(tree.sessions) <= ever
        with apache(version, tmp_path, **SUPER):
            assert newest_snapshot(tmp_path) == (last_zxid, *tree.state())


@pytest.mark.parametrize("version", VERSIONS)
def test_apaches_server_reads_what_ours_wrote(version: str, tmp_path: Path, long_form: bool) -> None:
    for seed in range(ROUNDS if not long_form else 10 * ROUNDS):
        script = write_ours(tmp_path, seed, 200)

        with apache(version, tmp_path, **SUPER) as server:
            assert newest_snapshot(tmp_path) == (script.zxid, *script.tree.state())
            client = a_client(server.connect)
            assert seen_by(client) == shown(script.tree.state()[1])
            client.stop()
            client.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_apaches_tools_read_what_ours_wrote(version: str, tmp_path: Path) -> None:
    script = write_ours(tmp_path, 5, 200)
    found = files_in(tmp_path)
    zxids = []
    for _, path in found.logs:
        entries = list(LogReader(OsDisk().open(path)).entries())
        printed = run_class(version, "org.apache.zookeeper.server.persistence.TxnLogToolkit", path)
        zxids += [entry.header.zxid for entry in entries]
        assert [f"zxid 0x{entry.header.zxid:x} " in printed for entry in entries] == [True] * len(entries)
        assert "CRC ERROR" not in printed
    assert zxids == list(range(found.logs[0].zxid, script.zxid + 1))
    for _, path in found.snapshots:
        printed = run_class(version, "org.apache.zookeeper.server.SnapshotFormatter", path)
        nodes = list(decode_snapshot(Path(path).read_bytes()).nodes)
        assert printed.count("  cZxid = 0x") == len(nodes)
        assert [node.path for node in nodes if f"\n{node.path}\n" not in printed] == []
