"""Topics that this broker creates by itself: asked for by name, or needed by a coordinator.

Any broker may do so: it writes the topic's znodes, and the controller, which watches them, gives the
partitions their leaders.
"""

import logging
from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from ottla.broker import topic_names
from ottla.broker.topic_requests import TopicPlan, TopicRefused, placement_rule
from ottla.broker.topic_writer import topics_beside, write_topic
from ottla.broker.zk_desk import Steps
from ottla.controller.placement import Placement, PlacementRefused, place_replicas
from ottla.model.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.node import Node

log = logging.getLogger(__name__)


class TopicCreation:
    """Writes new topics to ZooKeeper; the controller then gives them leaders."""

    __slots__ = ("_node", "_under_way")

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._under_way: set[str] = set()

    def create_for_client(self, names: Collection[str]) -> dict[str, ErrorCode]:
        """Create topics that a client asked for; the client is told to look again in a moment."""
        beside = topic_names.NamesAlike(names, chain(self._node.metadata.topics, self._under_way))
        answers: dict[str, ErrorCode] = {}
        plans: list[TopicPlan] = []
        for name in names:
            planned = self._plan_for_client(name, beside)
            if isinstance(planned, TopicPlan):
                plans.append(planned)
                beside.add(name)
            answers[name] = ErrorCode.LEADER_NOT_AVAILABLE if isinstance(planned, TopicPlan) else planned
        self._begin(plans)
        return answers

    def _plan_for_client(self, name: str, beside: topic_names.NamesAlike) -> TopicPlan | ErrorCode:
        if name == topic_names.CLUSTER_METADATA_TOPIC:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name == topic_names.OFFSETS_TOPIC:
            return self._plan_offsets_topic()
        if name == topic_names.TRANSACTIONS_TOPIC:
            return self._plan_transactions_topic()
        if beside.colliding(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        topics = self._node.config.topics
        return self._plan(name, topics.num_partitions, topics.default_replication_factor, {})

    def create_offsets_topic(self) -> None:
        """Create the topic that groups keep their offsets in."""
        planned = self._plan_offsets_topic()
        if isinstance(planned, TopicPlan):
            self._begin([planned])

    def _plan_offsets_topic(self) -> TopicPlan | ErrorCode:
        groups = self._node.config.groups
        overrides = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        }
        return self._plan(
            topic_names.OFFSETS_TOPIC,
            groups.offsets_topic_num_partitions,
            groups.offsets_topic_replication_factor,
            overrides,
        )

    def _plan_transactions_topic(self) -> TopicPlan | ErrorCode:
        transactions = self._node.config.transactions
        overrides = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(transactions.transaction_state_log_min_isr),
            "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return self._plan(
            topic_names.TRANSACTIONS_TOPIC,
            transactions.transaction_state_log_num_partitions,
            transactions.transaction_state_log_replication_factor,
            overrides,
        )

    def _plan(
        self, name: str, partitions: int, replication_factor: int, overrides: Mapping[str, str]
    ) -> TopicPlan | ErrorCode:
        if name in self._under_way:
            return ErrorCode.LEADER_NOT_AVAILABLE
        placed = self._place(partitions, replication_factor)
        if isinstance(placed, PlacementRefused):
            log.warning("a topic cannot be created topic=%s reason=%s", name, placed.why)
            return ErrorCode.INVALID_REPLICATION_FACTOR
        return TopicPlan(name, placed, dict(overrides))

    def _begin(self, plans: list[TopicPlan]) -> None:
        if plans:
            self._under_way.update(plan.name for plan in plans)
            self._node.zk.run(self._write(plans))

    def _write(self, plans: list[TopicPlan]) -> Steps[None]:
        """One after the other; each new topic stands beside the next ones."""
        try:
            beside = yield from topics_beside([plan.name for plan in plans])
            for plan in plans:
                outcome = yield from write_topic(self._node, plan, beside)
                if isinstance(outcome, TopicPlan):
                    beside.add(plan.name)
                self._under_way.discard(plan.name)
                told = outcome.why if isinstance(outcome, TopicRefused) else "created"
                log.info("topic creation topic=%s outcome=%s", plan.name, told)
        finally:
            self._under_way.difference_update(plan.name for plan in plans)

    def _place(self, partitions: int, replication_factor: int) -> Placement | PlacementRefused:
        brokers = self._node.metadata.brokers
        racks = {broker: brokers[broker].rack for broker in sorted(brokers)}
        if replication_factor > len(racks):
            return PlacementRefused(
                f"{replication_factor} replicas are asked for, {len(racks)} brokers are there"
            )
        draw = self._node.random.randrange
        return place_replicas(
            racks,
            partitions,
            replication_factor,
            start=draw(len(racks)),
            shift=draw(len(racks)),
            rule=placement_rule(self._node),
        )
