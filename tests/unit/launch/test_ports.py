"""Loopback ports."""

import socket

import pytest

from ottla.launch.ports import LOOPBACK, free_ports, require_free
from ottla.launch.refusal import LaunchRefused


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(9))) == 9


def test_port_that_someone_listens_on_is_refused_and_free_again_afterwards() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchRefused, match=f"port {port} on 127.0.0.1 is in use"):
            require_free(port)

    require_free(port)
