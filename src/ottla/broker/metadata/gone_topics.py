"""Topics that were deleted while no controller could tell this broker: so it looks for itself.

A controller tells only of deletions that it makes, and only to brokers that are registered and that it
reaches before its term ends. Whoever registers again, or hears of a new controller, is told of all topics
there are, but not of those that it knows and that are gone; it would show them to clients until it is
restarted.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.metadata.image import MetadataImage, MetadataUpdate, PartitionUpdate
from ottla.broker.runtime.tasks import Pause, Steps, TaskGroup
from ottla.model.ids import LEADER_DURING_DELETE, TopicId, TopicPartition
from ottla.znodes import paths
from ottla.zookeeper.ops import Children, GetChildren, Sync

log = logging.getLogger(__name__)

LOOK_AGAIN_MS = 2_000
"""While a topic that is known here is being deleted."""


class Told(NamedTuple):
    """Under which registration of this broker, and in which controller's term, news came."""

    broker_epoch: int
    controller_epoch: int


class GoneTopics:
    """Compares the picture with ZooKeeper after each new registration, and in each new controller's term."""

    def __init__(
        self, own: TaskGroup, metadata: MetadataImage, apply: Callable[[MetadataUpdate], None]
    ) -> None:
        self._own = own
        self._metadata = metadata
        self._apply = apply
        self._told: Told | None = None

    def on_update(self, told: Told, update: MetadataUpdate) -> None:
        """A controller knows that registration of ours: what it begins to delete from now on it tells.

        What it names in its first update is there; what was known before and is not named is doubtful.
        """
        before = self._told
        if before is not None and told <= before:
            return
        self._told = told
        if before is not None:
            named = {news.partition.topic for news in update.partitions}
            topics = self._metadata.topics
            doubtful = {name: topic.topic_id for name, topic in topics.items() if name not in named}
            self._own.spawn(self._compare(told, doubtful))

    def _compare(self, told: Told, doubtful: dict[str, TopicId]) -> Steps[None]:
        """Until none of them is on its way out; a newer registration or controller has us look anew."""
        while doubtful and self._told == told:
            yield Sync(paths.TOPICS)  # what a server says that lags behind proves nothing
            leaving = yield GetChildren(paths.DELETE_TOPICS)
            present = yield GetChildren(paths.TOPICS)
            if not isinstance(leaving, Children) or not isinstance(present, Children):
                return  # the session ended
            self._forget({name: doubtful[name] for name in doubtful.keys() - set(present.names)})
            doubtful = {name: doubtful[name] for name in doubtful.keys() & set(leaving.names)}
            yield Pause(LOOK_AGAIN_MS)

    def _forget(self, gone: dict[str, TopicId]) -> None:
        """Only what is as it was: a topic of that name may be new."""
        image = self._metadata
        topics = [
            image.topics[name]
            for name in sorted(gone)
            if name in image.topics and image.topic_id(name) == gone[name]
        ]
        if not topics:
            return
        log.info("topics gone meanwhile count=%d first=%s", len(topics), topics[0].name)
        updates = [
            PartitionUpdate(
                TopicPartition(topic.name, index), topic.topic_id, info._replace(leader=LEADER_DURING_DELETE)
            )
            for topic in topics
            for index, info in topic.partitions.items()
        ]
        self._apply(MetadataUpdate(image.controller, image.brokers, updates))
