"""Why things are as they are: decisions on their way to the topic ``__ottla_decisions``.

Nothing here ever delays an election: decisions are kept in memory, bounded, and written in small batches
while the broker has time. What does not fit is counted.
"""

import logging
from collections import deque
from collections.abc import Callable

from ottla.broker.decisions.receipts import LossReceipts
from ottla.broker.decisions.records import (
    Circumstances,
    cut_record,
    decision_record,
    fenced_record,
    start_record,
)
from ottla.broker.metadata.image import MetadataImage
from ottla.broker.peers.links import LinkLost, PeerLinks
from ottla.broker.replicas.losses import LogCut, UncleanStart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.timers import Timer
from ottla.broker.topics.writer import create_topics, draw_topic_id
from ottla.controller.effects import Decided, NewTopic
from ottla.controller.election import Rule
from ottla.controller.placement import assigned, place_replicas
from ottla.coordinator.shard import TransactionFenced
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

log = logging.getLogger(__name__)

KEPT_MAX = 50_000
RECORDS_A_BATCH = 200
PAUSE_MS = 20
RETRY_MS = 1_000
LOOK_MS = 100
"""How often it is seen whether the topic is there, and has a leader."""
PRODUCE_VERSION = 9
REPLICAS = 3
PATIENCE_MS = 30_000
"""How long the topic waits for three brokers before it is made with fewer."""
LINGER_MS = 2_000
"""How long a broker that stops waits for its last decisions to be written."""
LANE = "decisions"
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.bytes": str(64 * 1024 * 1024),
    "retention.ms": str(30 * 24 * 3600 * 1000),
    "segment.bytes": str(8 * 1024 * 1024),
}


class DecisionLog:
    """The last decisions in memory, and a writer that follows them."""

    def __init__(
        self,
        runtime: Runtime,
        links: PeerLinks,
        metadata: MetadataImage,
        is_controller: Callable[[], bool],
        high_watermark: Callable[[TopicPartition], int | None],
    ) -> None:
        """``high_watermark`` gives that of this broker's own replica, if it has one."""
        self._runtime = runtime
        self._links = links
        self._metadata = metadata
        self._is_controller = is_controller
        self._waiting: deque[Callable[[], Record]] = deque()
        self._receipts = LossReceipts(links, runtime.timers, high_watermark, self._keep)
        self._timer: Timer | None = None
        self._is_sending = False
        self._is_creating = False
        self._since_ms: int | None = None
        self._not_before_ms = 0
        self._records_a_batch = RECORDS_A_BATCH
        self._when_written: Callable[[], None] | None = None
        self.dropped = 0
        """Decisions that did not fit into memory."""

    @property
    def is_enabled(self) -> bool:
        return self._runtime.config.controller.ottla_decisions_enable

    @property
    def waiting(self) -> int:
        """How many are not yet in the topic."""
        return len(self._waiting)

    def take(self, decided: Decided) -> None:
        """Count the decisions of a turn, and keep them."""
        self._runtime.meters.decided(decided.decisions)
        if not self.is_enabled:
            return
        circumstances = self._circumstances(decided.controller_epoch, decided.cause)
        for decision in decided.decisions:
            self._keep(lambda decision=decision: decision_record(decision, circumstances))  # type: ignore[misc]
            if decision.rule is Rule.UNCLEAN:
                self._receipts.begin(decision, circumstances)

    def on_log_cut(self, cut: LogCut) -> None:
        """This broker, as a follower, cut its log: a receipt may be completed by it."""
        if self.is_enabled:
            epoch = self._runtime.identity.controller_epoch
            circumstances = self._circumstances(epoch, "a follower cut its log")
            self._keep(lambda: cut_record(cut, circumstances))

    def on_unclean_start(self, start: UncleanStart) -> None:
        """This broker leads without having been in sync: what it lacks is part of the receipt."""
        if self.is_enabled:
            circumstances = self._circumstances(
                self._runtime.identity.controller_epoch, "an unclean election"
            )
            self._keep(lambda: start_record(start, circumstances))

    def on_transaction_fenced(self, fenced: TransactionFenced) -> None:
        """This broker, as coordinator, aborted an open transaction."""
        self._runtime.meters.transactions_fenced[fenced.cause] += 1
        if self.is_enabled:
            circumstances = self._circumstances(self._runtime.identity.controller_epoch, fenced.cause)
            self._keep(lambda: fenced_record(fenced, circumstances))

    def when_written(self, go_on: Callable[[], None]) -> None:
        """Go on once nothing waits to be written, or cannot be, or has been waited for long enough."""
        self._when_written = go_on
        self._runtime.timers.after(LINGER_MS, self._waited)
        self._look_whether_written()

    def _look_whether_written(self) -> None:
        is_busy = self._is_sending or (bool(self._waiting) and self._leader() is not None)
        if not is_busy:
            self._waited()

    def _waited(self) -> None:
        go_on, self._when_written = self._when_written, None
        if go_on is not None:
            go_on()

    def _circumstances(self, controller_epoch: int, cause: str) -> Circumstances:
        return Circumstances(
            self._runtime.identity.broker_id, controller_epoch, cause, self._runtime.clock.wall_ms()
        )

    def _keep(self, make: Callable[[], Record]) -> None:
        if len(self._waiting) >= KEPT_MAX:
            self._waiting.popleft()
            if self.dropped == 0:
                log.warning("decisions are dropped: the topic cannot take them topic=%s", DECISIONS_TOPIC)
            self.dropped += 1
        self._waiting.append(make)
        self._write_soon(PAUSE_MS)

    # ---- writing

    def _write_soon(self, delay_ms: int) -> None:
        if self._timer is None and not self._is_sending:
            self._timer = self._runtime.timers.after(delay_ms, self._write)

    def _write(self) -> None:
        self._timer = None
        if not self._waiting or self._is_sending or not self.is_enabled:
            return
        leader = self._leader()
        if leader is None:
            self._make_topic()
            self._write_soon(LOOK_MS)
            return
        records = [self._waiting.popleft() for _ in range(min(self._records_a_batch, len(self._waiting)))]
        self._is_sending = True
        batch = bytes(build_batch(make() for make in records))
        rows = [PartitionProduceData(index=0, records=batch)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=DECISIONS_TOPIC, partition_data=rows)],
        )
        link = self._links.get(leader, LANE, negotiates=True)
        link.request(request, PRODUCE_VERSION, lambda answer: self._written(records, answer))

    def _written(self, records: list[Callable[[], Record]], answer: ProduceResponse | LinkLost) -> None:
        self._is_sending = False
        has_moved = isinstance(answer, LinkLost)
        if not isinstance(answer, LinkLost):
            errors = {row.error_code for topic in answer.responses for row in topic.partition_responses}
            if errors == {ErrorCode.NONE}:
                self._records_a_batch = RECORDS_A_BATCH
                self._write_soon(PAUSE_MS)
                self._look_whether_written()
                return
            has_moved = ErrorCode.NOT_LEADER_OR_FOLLOWER in errors
            if ErrorCode.MESSAGE_TOO_LARGE in errors:
                records = self._smaller(records)
        room = max(0, KEPT_MAX - len(self._waiting))
        self.dropped += max(0, len(records) - room)
        self._waiting.extendleft(reversed(records[len(records) - min(room, len(records)) :]))
        self._write_soon(LOOK_MS if has_moved else RETRY_MS)

    def _smaller(self, records: list[Callable[[], Record]]) -> list[Callable[[], Record]]:
        """Somebody has set the topic's limit low: write fewer at a time; one that is too large is dropped."""
        if len(records) > 1:
            self._records_a_batch = len(records) // 2
            return records
        self.dropped += 1
        return []

    # ---- the topic

    def _leader(self) -> BrokerId | None:
        """Who takes the decisions now, if anybody does."""
        info = self._metadata.partition(TopicPartition(DECISIONS_TOPIC, 0))
        return info.leader if info is not None and info.leader in self._metadata.brokers else None

    def _make_topic(self) -> None:
        """The controller makes it, with three replicas as soon as there are three brokers."""
        if self._is_creating or not self._is_controller():
            return
        now_ms = self._runtime.clock.monotonic_ms()
        if now_ms < self._not_before_ms:
            return
        if self._since_ms is None:
            self._since_ms = now_ms
        racks = {broker: live.rack for broker, live in self._metadata.brokers.items()}
        if not racks or (len(racks) < REPLICAS and now_ms - self._since_ms < PATIENCE_MS):
            return
        placed = place_replicas(racks, 1, min(REPLICAS, len(racks)))
        if isinstance(placed, Refusal):
            placed = place_replicas(dict.fromkeys(racks), 1, min(REPLICAS, len(racks)))
        assert not isinstance(placed, Refusal), "without racks one partition finds its place"
        self._is_creating = True
        topic = NewTopic(draw_topic_id(self._runtime.random), assigned(placed.items()), SETTINGS)
        self._runtime.own.spawn(create_topics({DECISIONS_TOPIC: topic}), self._made)

    def _made(self, refused: dict[str, Refusal]) -> None:
        self._is_creating = False
        self._not_before_ms = self._runtime.clock.monotonic_ms() + RETRY_MS
        for refusal in refused.values():
            if refusal.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                log.warning("the topic of decisions cannot be made reason=%s", refusal.why)
