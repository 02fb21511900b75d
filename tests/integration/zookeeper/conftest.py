"""What the tests of the ZooKeeper client share."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from support.wire.tcp_proxy import TcpProxy
from support.zookeeper.chroots import Chroot, Chroots


@pytest.fixture
def proxy(zookeeper: Chroot) -> Iterator[TcpProxy]:
    with TcpProxy.to(zookeeper.address) as proxy:
        yield proxy


@pytest.fixture
def other(zookeeper: Chroot) -> Iterator[KazooClient]:
    """Somebody else, who sees what is really there."""
    client = KazooClient(zookeeper.connect)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="session")
def chroots(apache_zookeeper_server: EmbeddedZooKeeper) -> Chroots:
    """Our client before Apache's server: client and server by one hand may be wrong alike."""
    return Chroots(apache_zookeeper_server)
