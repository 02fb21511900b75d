"""Which ZooKeeper a cluster on this machine runs on: a word, or addresses of servers that run already."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
    from ottla.launch.zookeeper.foreign import ForeignZooKeeper
    from ottla.launch.zookeeper.keeper import EmbeddedKeeper

KEEPER = "keeper"
APACHE = "apache"
VARIABLE = "OTTLA_ZOOKEEPER"
"""Names the choice where nobody makes one."""
DEFAULT = KEEPER

ClusterZooKeeper: TypeAlias = "EmbeddedKeeper | EmbeddedZooKeeper | ForeignZooKeeper"


def chosen_zookeeper(
    choice: str | None, data_dir: Path, *, port: int = 0, sync: bool = True
) -> ClusterZooKeeper:
    """The built-in keeper (``keeper``), Apache's server (``apache``), or whoever runs at ``HOST:PORT,…``."""
    choice = choice or os.environ.get(VARIABLE) or DEFAULT
    if choice == KEEPER:
        from ottla.launch.zookeeper.keeper import EmbeddedKeeper

        return EmbeddedKeeper(data_dir, port=port, sync=sync)
    if choice == APACHE:
        from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper

        return EmbeddedZooKeeper(data_dir, port=port, sync=sync)
    from ottla.launch.zookeeper.foreign import ForeignZooKeeper

    return ForeignZooKeeper(choice)
