"""How many connections an address may have; hosts may be named, so names must be looked up."""

import asyncio
import ipaddress
import logging

from ottla.config.areas import ConnectionsConfig

log = logging.getLogger(__name__)


class AddressLimits:
    """``max.connections.per.ip.overrides``, looked up once for each new value, while connections come in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._given: dict[str, int] = {}
        self._by_address: dict[str, int] = {}
        self._searches: set[asyncio.Task[None]] = set()

    def of(self, address: str, limits: ConnectionsConfig) -> int:
        """The limit of this address."""
        if self._given != limits.max_connections_by_ip:
            self._take(limits.max_connections_by_ip)
        return self._by_address.get(address, limits.max_connections_per_ip)

    def _take(self, given: dict[str, int]) -> None:
        self._given = given
        self._by_address = {host: count for host, count in given.items() if _is_address(host)}
        for host in given.keys() - self._by_address.keys():
            search = self._loop.create_task(self._look_up(host, given))
            self._searches.add(search)
            search.add_done_callback(self._searches.discard)

    async def _look_up(self, host: str, given: dict[str, int]) -> None:
        try:
            found = await self._loop.getaddrinfo(host, None)
        except (OSError, UnicodeError) as error:  # A name that no host can have is a UnicodeError.
            log.warning(
                "host not found, its limit holds for nobody"
                " setting=max.connections.per.ip.overrides host=%s error=%s",
                host,
                error,
            )
            return
        if given is self._given:
            for *_, address in found:
                self._by_address.setdefault(str(address[0]), given[host])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
