"""A network of its own for every broker: namespaces on one bridge, in which single directions can be cut.

``python -m chaos`` moves into a fresh network and mount namespace before anything else, as root or, where the
kernel lets users do so, as an ordinary user; whatever it builds there is gone when it ends. To cut the way
from A to B, A is told that B has a hardware address nobody has: packets leave and arrive nowhere, without a
word, as on a broken switch. The other direction is not touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support.processes.java_process import dies_with_its_parent
from support.running.waiting import wait_until

INSIDE = "OTTLA_CHAOS_INSIDE"
BRIDGE = "chaos0"
CLIENTS = "10.77.0.1"
NOWHERE = "02:00:00:00:00:ff"
LOOPBACK = "127.0.0.1"
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_AS_ROOT = ("unshare", "--net", "--mount")
_AS_USER = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def is_inside() -> bool:
    """Whether this process already sits in namespaces of its own."""
    return os.environ.get(INSIDE) == "1"


def move_inside(arguments: list[str]) -> str | None:
    """Become the same command in namespaces of its own; returns the reason where that cannot be."""
    missing = [name for name in ("ip", "unshare", "nsenter", "mount") if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on the PATH"
    for way in (_AS_ROOT, _AS_USER):
        trial = [*way, "ip", "link", "add", BRIDGE, "type", "bridge"]
        if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(way[0], [*way, sys.executable, "-m", "chaos", *arguments])
    return "this user may not make network namespaces here"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: its address, and the words in front of its command that put it there."""

    address: str
    prefix: tuple[str, ...] = ()


class Network:
    """The places of a cluster, and what is cut between them."""

    def __init__(self) -> None:
        self.can_cut = is_inside()
        self._cuts: Counter[tuple[str, str]] = Counter()
        self._places: dict[str, Place] = {}
        self._holders: list[subprocess.Popen[bytes]] = []
        if self.can_cut:
            _run("ip", "link", "set", "lo", "up")
            _run("ip", "link", "add", BRIDGE, "type", "bridge")
            _run("ip", "link", "set", BRIDGE, "up")
            _run("ip", "addr", "add", f"{CLIENTS}/24", "dev", BRIDGE)

    def keep_ports(self) -> None:
        """Let outgoing connections take no port that a server has to find again after its restart."""
        if self.can_cut:
            with contextlib.suppress(OSError):
                OUTGOING.write_text("61000 65535", encoding="ascii")

    def shared_place(self, number: int) -> Place:
        """One more address beside the clients': for what is never cut off as a sender (ZooKeeper)."""
        if not self.can_cut:
            return Place(LOOPBACK)
        address = f"10.77.0.{number}"
        _run("ip", "addr", "add", f"{address}/24", "dev", BRIDGE)
        return Place(address)

    def own_place(self, number: int) -> Place:
        """A namespace of its own."""
        if not self.can_cut:
            return Place(LOOPBACK)
        holder = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            preexec_fn=dies_with_its_parent,
        )
        self._holders.append(holder)
        namespace = Path(f"/proc/{holder.pid}/ns/net")
        ours = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(namespace) != ours, "a network namespace is there", every=0.01)
        place = Place(f"10.77.0.{number}", ("nsenter", f"--net={namespace}"))
        _run(
            "ip",
            "link",
            "add",
            f"chaos{number}",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            str(holder.pid),
        )
        _run("ip", "link", "set", f"chaos{number}", "master", BRIDGE, "up")
        for command in (
            ("ip", "link", "set", "lo", "up"),
            ("ip", "addr", "add", f"{place.address}/24", "dev", "eth0"),
            ("ip", "link", "set", "eth0", "up"),
        ):
            _run(*place.prefix, *command)
        self._places[place.address] = place
        return place

    def cut(self, sender: str, receiver: str) -> None:
        """Packets from one address to the other vanish; cuts of several faults add up."""
        self._cuts[sender, receiver] += 1
        if self._cuts[sender, receiver] == 1:
            self._neighbour(sender, "replace", receiver, "lladdr", NOWHERE, "nud", "permanent")

    def mend(self, sender: str, receiver: str) -> None:
        """Undo one ``cut``."""
        self._cuts[sender, receiver] -= 1
        if not self._cuts[sender, receiver]:
            self._neighbour(sender, "del", receiver)

    def close(self) -> None:
        for holder in self._holders:
            holder.kill()
            holder.wait()

    def _neighbour(self, sender: str, verb: str, receiver: str, *rest: str) -> None:
        _run(*self._places[sender].prefix, "ip", "neigh", verb, receiver, *rest, "dev", "eth0")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
