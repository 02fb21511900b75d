"""Whom ``preferred-replica-election`` asks when it is not told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.cli.shared import connection
from ottla.client.admin.cluster import elect_leaders
from support.client.answering_client import AnsweringClient
from support.processes.commands import run_here


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the command looked for a cluster; empty: where every command looks."""
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVER", raising=False)
    seen: list[str] = []

    @contextmanager
    def connected(bootstrap_server: str, *_arguments: Any) -> Iterator[Any]:
        seen.append(bootstrap_server)
        yield AnsweringClient({elect_leaders: {}})

    monkeypatch.setattr(connection, "connected", connected)
    return seen


def test_without_an_address_it_asks_where_the_other_tools_do(
    servers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here("preferred-replica-election")
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", "h:1")
    run_here("preferred-replica-election")
    run_here("preferred-replica-election", "--bootstrap-server", "h:2")

    assert servers == ["", "h:1", "h:2"]


def test_two_addresses_are_refused(servers: list[str]) -> None:
    ran = run_here("preferred-replica-election", "--zookeeper", "h:1", "--bootstrap-server", "h:2")

    assert (ran.exit_code, servers) == (2, [])
