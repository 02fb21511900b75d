"""The console beside a cluster: without its packages it is refused by name, and the cluster runs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ottla.cli.inspect import console
from ottla.cli.local import console_beside
from ottla.cli.local.console_beside import ADDRESS_NAME, address_here, forget_address, start_console
from support.processes.commands import run_here


def test_without_its_packages_the_command_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "NEEDED", ("starlette", "nowhere_to_be_found"))

    ran = run_here("console")

    assert ran.exit_code == 1
    assert ran.stderr == "ottla: the console needs nowhere_to_be_found: pip install 'ottla[console]'\n"


def test_a_cluster_starts_without_them_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(console, "NEEDED", ("nowhere_to_be_found",))

    assert start_console("127.0.0.1:1", tmp_path) is None
    assert "pip install 'ottla[console]'" in capsys.readouterr().out


def test_a_port_in_use_is_replaced_beside_a_cluster_and_refused_by_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(console_beside, "DEFAULT_PORT", port)

        ran = run_here("console", "--port", str(port))
        with console_beside.listening_socket() as another:
            assert another.getsockname()[1] not in (0, port)

        assert ran.exit_code == 1
        assert "--port 0 takes a free one" in ran.stderr


def test_the_address_is_for_its_owner_alone_and_gone_with_the_console(tmp_path: Path) -> None:
    beside = start_console("127.0.0.1:1", tmp_path)
    assert beside is not None
    try:
        address = address_here(tmp_path)
        assert address is not None
        assert address.startswith("http://127.0.0.1:")
        assert os.stat(tmp_path / ADDRESS_NAME).st_mode & 0o077 == 0
        port = int(address.partition("/?")[0].rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port)).close()  # At once: it listens before it runs.
    finally:
        beside.stop()

    assert address_here(tmp_path) is None
    forget_address(tmp_path)
