"""Loopback ports."""

import socket
from pathlib import Path

import pytest

from ottla.launch import ports
from ottla.launch.ports import FIRST_PORT, LOOPBACK, free_ports, require_free
from ottla.launch.refusal import LaunchRefused


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(9))) == 9


def test_no_outgoing_connection_can_take_a_free_port_before_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outgoing = tmp_path / "range"
    monkeypatch.setattr(ports, "OUTGOING_PORTS", outgoing)

    outgoing.write_text("20000\t60999\n")
    assert all(FIRST_PORT <= port < 20_000 for port in free_ports(30))
    outgoing.write_text(f"{FIRST_PORT - 10}\t60999\n")
    assert len(set(free_ports(3))) == 3, "where there is no room below, any will do"


def test_port_that_someone_listens_on_is_refused_and_free_again_afterwards() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchRefused, match=f"port {port} on 127.0.0.1 is in use"):
            require_free(port)

    require_free(port)
