"""Topics that this broker creates by itself: asked for by name, or needed by a coordinator.

Any broker may do so: it writes the topic's znodes, and the controller, which watches them, gives the
partitions their leaders.
"""

import logging
from collections.abc import Collection, Mapping
from itertools import chain

from ottla.broker.metadata.image import MetadataImage
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Steps
from ottla.broker.topics.writer import create_topics, draw_topic_id
from ottla.controller.effects import NewTopic
from ottla.controller.placement import Placement, PlacementRule, assigned, place_replicas
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.internal_topics import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
)
from ottla.model.topic_names import NamesAlike

log = logging.getLogger(__name__)


class TopicCreation:
    """Writes new topics to ZooKeeper; the controller then gives them leaders."""

    __slots__ = ("_metadata", "_runtime", "_under_way")

    def __init__(self, runtime: Runtime, metadata: MetadataImage) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._under_way: set[str] = set()

    def create_for_client(self, names: Collection[str]) -> dict[str, ErrorCode]:
        """Create topics that a client asked for; the client is told to look again in a moment."""
        beside = NamesAlike(names, chain(self._metadata.topics, self._under_way))
        answers: dict[str, ErrorCode] = {}
        plans: dict[str, NewTopic] = {}
        for name in names:
            planned = self._plan_for_client(name, beside)
            if isinstance(planned, NewTopic):
                plans[name] = planned
                beside.add(name)
            answers[name] = ErrorCode.LEADER_NOT_AVAILABLE if isinstance(planned, NewTopic) else planned
        self._begin(plans)
        return answers

    def _plan_for_client(self, name: str, beside: NamesAlike) -> NewTopic | ErrorCode:
        if name == CLUSTER_METADATA_TOPIC:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in INTERNAL_TOPICS:
            return self._plan_internal(name)
        if beside.colliding(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        topics = self._runtime.config.topics
        return self._plan(name, topics.num_partitions, topics.default_replication_factor, {})

    def create_internal(self, name: str) -> None:
        """Create a coordinator's topic."""
        planned = self._plan_internal(name)
        if isinstance(planned, NewTopic):
            self._begin({name: planned})

    def _plan_internal(self, name: str) -> NewTopic | ErrorCode:
        return self._plan_offsets_topic() if name == OFFSETS_TOPIC else self._plan_transactions_topic()

    def _plan_offsets_topic(self) -> NewTopic | ErrorCode:
        groups = self._runtime.config.groups
        overrides = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        }
        return self._plan(
            OFFSETS_TOPIC,
            groups.offsets_topic_num_partitions,
            groups.offsets_topic_replication_factor,
            overrides,
        )

    def _plan_transactions_topic(self) -> NewTopic | ErrorCode:
        transactions = self._runtime.config.transactions
        overrides = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(transactions.transaction_state_log_min_isr),
            "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return self._plan(
            TRANSACTIONS_TOPIC,
            transactions.transaction_state_log_num_partitions,
            transactions.transaction_state_log_replication_factor,
            overrides,
        )

    def _plan(
        self, name: str, partitions: int, replication_factor: int, overrides: Mapping[str, str]
    ) -> NewTopic | ErrorCode:
        if name in self._under_way:
            return ErrorCode.LEADER_NOT_AVAILABLE
        placed = self._place(partitions, replication_factor)
        if isinstance(placed, Refusal):
            log.warning("a topic cannot be created topic=%s reason=%s", name, placed.why)
            return ErrorCode.INVALID_REPLICATION_FACTOR
        return NewTopic(draw_topic_id(self._runtime.random), assigned(placed.items()), overrides)

    def _begin(self, plans: dict[str, NewTopic]) -> None:
        if plans:
            self._under_way.update(plans)
            self._runtime.own.spawn(self._write(plans))

    def _write(self, plans: dict[str, NewTopic]) -> Steps[None]:
        try:
            refused = yield from create_topics(plans)
            for name in plans:
                told = refused[name].why if name in refused else "created"
                log.info("topic creation topic=%s outcome=%s", name, told)
        finally:
            self._under_way.difference_update(plans)

    def _place(self, partitions: int, replication_factor: int) -> Placement | Refusal:
        brokers = self._metadata.brokers
        racks = {broker: brokers[broker].rack for broker in sorted(brokers)}
        count, draw = max(1, len(racks)), self._runtime.random.randrange
        return place_replicas(
            racks,
            partitions,
            replication_factor,
            start=draw(count),
            shift=draw(count),
            rule=PlacementRule(self._runtime.config.controller.ottla_replica_placement),
        )
