"""What the tests of the ZooKeeper client share."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from support.tcp_proxy import TcpProxy
from support.zookeeper_chroots import Chroot


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
