"""A real cluster for other people's tests, whatever framework runs them.

::

    from ottla.testing import start_cluster

    with start_cluster(brokers=3) as ottla:
        topic = ottla.topic(partitions=3)
        ...                     # any Kafka client at ottla.bootstrap_servers
        ottla.kill(0)

pytest users need no import: the fixture is called ``ottla``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.cluster import ClusterUnderTest, TopicNotCreated, start_cluster

__all__ = ["ClusterUnderTest", "TopicNotCreated", "start_cluster"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: pytest loads this package in every run, for its plugin."""
    if name in __all__:
        from ottla.testing import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
