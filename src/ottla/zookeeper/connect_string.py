"""The text that names an ensemble: ``host1:2181,host2:2181,[::1]:2183/chroot``."""

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_PORT = 2181


class Host(NamedTuple):
    """One server of the ensemble."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers, and the node below which everything of ours lives ("" for the root)."""

    hosts: tuple[Host, ...]
    chroot: str = ""

    def __str__(self) -> str:
        return ",".join(str(host) for host in self.hosts) + self.chroot


def parse_connect_string(text: str) -> Ensemble:
    """Read the text; one that names no ensemble raises ``ValueError`` with a sentence."""
    servers, slash, rest = text.strip().partition("/")
    chroot = (slash + rest).rstrip("/")
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        raise ValueError(f"{text!r} does not name a ZooKeeper ensemble: {chroot!r} is not a path")
    hosts = tuple(_host(part.strip(), text) for part in servers.split(",") if part.strip())
    if not hosts:
        raise ValueError(f"{text!r} does not name a ZooKeeper ensemble: write host:port[,host:port][/chroot]")
    return Ensemble(hosts, chroot)


def _host(part: str, text: str) -> Host:
    name, port = part, str(DEFAULT_PORT)
    if part.startswith("["):
        name, bracket, rest = part[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} does not name a ZooKeeper ensemble: {part!r} is not a host")
        port = rest[1:] or port
    elif part.count(":") == 1:
        name, port = part.split(":")
    if not name or any(c.isspace() for c in name):
        raise ValueError(f"{text!r} does not name a ZooKeeper ensemble: {part!r} is not a host")
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        raise ValueError(f"{text!r} does not name a ZooKeeper ensemble: {port!r} is not a port")
    return Host(name, int(port))
