"""The shared server of the tests gives every test a place of its own."""

from kazoo.client import KazooClient

from support.zookeeper.chroots import Chroot


def test_each_test_gets_an_empty_chroot(zookeeper: Chroot) -> None:
    client = KazooClient(zookeeper.connect)
    client.start()
    try:
        assert client.get_children("/") == []
        client.create("/mine")
    finally:
        client.stop()
        client.close()


def test_nothing_of_another_test_is_seen(zookeeper: Chroot) -> None:
    test_each_test_gets_an_empty_chroot(zookeeper)
