"""A ZooKeeper session for the length of a command; what goes wrong with it becomes one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.shared.refusal import CommandRefused
from ottla.server.zookeeper.blocking import BlockingZooKeeper, ZooKeeperRefused
from ottla.server.zookeeper.session import ZooKeeperUnavailable

CONNECT_MS_MAX = 10_000
REFUSED_MS_MAX = 1_000


@contextmanager
def zookeeper_session(connect: str) -> Iterator[BlockingZooKeeper]:
    """A session at ``host:port,.../chroot``."""
    try:
        with BlockingZooKeeper(connect, limit_ms=CONNECT_MS_MAX, refused_ms=REFUSED_MS_MAX) as session:
            yield session
    except (ZooKeeperRefused, ZooKeeperUnavailable) as error:
        raise CommandRefused(str(error).rstrip(".")) from error
    except ValueError as error:
        raise CommandRefused(f"{connect!r} is not an address like host:2181/chroot: {error}") from error
