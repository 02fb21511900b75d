"""What the keeper tells whoever asks with four letters."""

from __future__ import annotations

import pytest

from ottla.keeper.words import VERSION, Report
from ottla.zookeeper.server.server import Server, ServerConfig
from ottla.zookeeper.server.tree import Tree
from support.zookeeper.raw import CREATE, GET_DATA, MemoryWire, RawClient, create, text


@pytest.fixture
def server() -> Server:
    return Server(ServerConfig(), Tree(), now_ms=0, wall_ms=1_700_000_000_000)


@pytest.fixture
def client(server: Server) -> RawClient:
    client = RawClient(MemoryWire(server))
    assert client.connect()
    client.ask(CREATE, create("/mine", flags=1))
    client.ask(GET_DATA, text("/mine") + b"\1")
    return client


def report(server: Server, *words: str) -> Report:
    return Report(server, frozenset(words or ("*",)), {"clientPort": 2181})


def test_srvr_says_that_it_is_one_server_and_not_apaches(server: Server, client: RawClient) -> None:
    lines = report(server, "srvr").answer("srvr").splitlines()

    assert lines[0] == f"Zookeeper version: {VERSION}"
    assert "ottla" in VERSION
    assert {"Mode: standalone", "Zxid: 0x2", "Node count: 5", "Connections: 1"} <= set(lines)


def test_a_word_that_is_not_allowed_is_answered_with_a_sentence(server: Server) -> None:
    refused = "stat is not executed because it is not in the whitelist.\n"

    assert report(server, "srvr").answer("stat") == refused


def test_srvr_is_always_answered(server: Server) -> None:
    assert report(server, "ruok").answer("srvr").startswith("Zookeeper version")


def test_a_word_that_is_not_served_is_not_executed(server: Server) -> None:
    assert "not executed" in report(server).answer("stmk")


def test_watches_are_listed_by_path_and_by_session(server: Server, client: RawClient) -> None:
    words = report(server)

    assert words.answer("wchs") == "1 connections watching 1 paths\nTotal watches:1\n"
    assert words.answer("wchp") == f"/mine\n\t0x{client.session:x}\n\n"
    assert words.answer("wchc") == f"0x{client.session:x}\n\t/mine\n\n"


def test_dump_names_sessions_and_their_nodes(server: Server, client: RawClient) -> None:
    dumped = report(server).answer("dump")

    assert f"1 expire in 32000 ms:\n\t0x{client.session:x}\n" in dumped
    assert dumped.endswith(f"Sessions with Ephemerals (1):\n0x{client.session:x}:\n\t/mine\n")


def test_connections_are_listed_with_their_sessions(server: Server, client: RawClient) -> None:
    words = report(server)

    assert words.answer("stat").splitlines()[2] == " /127.0.0.1:0[1](queued=0,recved=3,sent=3)"
    assert f"sid=0x{client.session:x},to=30000" in words.answer("cons")


def test_figures_are_told_one_a_line(server: Server, client: RawClient) -> None:
    rows = dict(line.split("\t") for line in report(server).answer("mntr").splitlines())

    assert rows["zk_server_state"] == "standalone"
    assert (rows["zk_znode_count"], rows["zk_ephemerals_count"], rows["zk_watch_count"]) == ("5", "1", "1")


@pytest.mark.parametrize(("word", "answer"), [("ruok", "imok"), ("isro", "rw")])
def test_short_answers(server: Server, word: str, answer: str) -> None:
    assert report(server).answer(word) == answer


def test_conf_shows_the_settings(server: Server) -> None:
    assert report(server).answer("conf") == "clientPort=2181\n"


def test_a_word_instead_of_the_first_frame_is_handed_to_the_host(server: Server) -> None:
    wire = MemoryWire(server)

    wire.send(b"srvr")

    assert server.asked == [(wire.connection, "srvr")]
    assert wire.connection.is_closing


def test_a_word_that_comes_in_two_pieces_is_understood(server: Server) -> None:
    wire = MemoryWire(server)

    wire.send(b"sr")
    wire.send(b"vr\n")

    assert [word for _, word in server.asked] == ["srvr"]
