"""The limits of single addresses, which may be given by name."""

import asyncio
import socket
from typing import Any

import pytest

from ottla.config.areas import ConnectionsConfig
from ottla.server.address_limits import AddressLimits

FOUND = {"shop": ["10.0.0.7", "fe80::7"], "bank": ["10.0.0.9"]}


async def after_the_search(limits: AddressLimits, config: ConnectionsConfig, address: str) -> int:
    limits.of(address, config)
    for _ in range(5):
        await asyncio.sleep(0)
    return limits.of(address, config)


def with_names(monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop) -> None:
    async def look_up(host: str, port: None) -> list[tuple[Any, ...]]:
        if host not in FOUND:
            raise socket.gaierror(f"{host} is unknown")
        return [(0, 0, 0, "", (address, 0)) for address in FOUND[host]]

    monkeypatch.setattr(loop, "getaddrinfo", look_up)


@pytest.mark.parametrize(
    ("address", "limit"),
    [("10.0.0.7", 3), ("fe80::7", 3), ("10.0.0.8", 5), ("10.0.0.9", 50), ("::1", 9)],
)
def test_names_and_addresses_have_their_limits_and_all_others_the_common_one(
    monkeypatch: pytest.MonkeyPatch, address: str, limit: int
) -> None:
    async def play() -> int:
        with_names(monkeypatch, asyncio.get_running_loop())
        config = ConnectionsConfig(
            max_connections_per_ip=50, max_connections_per_ip_overrides="shop:3, 10.0.0.8:5,::1:9,nowhere:1"
        )
        return await after_the_search(AddressLimits(asyncio.get_running_loop()), config, address)

    assert asyncio.run(play()) == limit


def test_a_new_value_takes_the_place_of_the_old_and_a_host_nobody_knows_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> list[int]:
        with_names(monkeypatch, asyncio.get_running_loop())
        limits = AddressLimits(asyncio.get_running_loop())
        old = ConnectionsConfig(max_connections_per_ip=50, max_connections_per_ip_overrides="shop:3")
        new = ConnectionsConfig(
            max_connections_per_ip=50, max_connections_per_ip_overrides="bank:4,nowhere:1"
        )
        before = await after_the_search(limits, old, "10.0.0.7")
        return [before, *[await after_the_search(limits, new, each) for each in ("10.0.0.7", "10.0.0.9")]]

    assert asyncio.run(play()) == [3, 50, 4]
    assert "host=nowhere" in caplog.text


def test_a_name_that_no_host_can_have_is_told_like_one_that_nobody_knows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> int:
        limits = AddressLimits(asyncio.get_running_loop())
        config = ConnectionsConfig(
            max_connections_per_ip=50, max_connections_per_ip_overrides=f"{'n' * 70}.example:1"
        )
        limits.of("10.0.0.7", config)
        await asyncio.gather(*limits._searches)
        return limits.of("10.0.0.7", config)

    assert asyncio.run(play()) == 50
    assert "host not found" in caplog.text
