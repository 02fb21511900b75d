"""One term in office: hints become facts, facts become events, effects become writes and requests.

Everything happens in turns. A watch only puts a duty into the queue; the duty reads ZooKeeper when its turn
comes, hands the event to the core, and carries out the effects; the outcome of a write is handed back before
anything else is taken. When the term ends, whatever is under way is dropped where it stands.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from struct import error as UnpackableNumber
from typing import Any

from ottla.broker.controlling.reads import ControllerReads, read_unclean_topics
from ottla.broker.controlling.requests import (
    LEADER_AND_ISR_VERSION,
    STOP_REPLICA_VERSION,
    UPDATE_METADATA_VERSION,
    ControllerRequests,
)
from ottla.broker.controlling.steps import Fence, TermEnded
from ottla.broker.controlling.watches import Duties, Duty, Found
from ottla.broker.controlling.writes import ControllerWrites
from ottla.broker.peers.channel import Channels
from ottla.broker.peers.links import PeerLinks
from ottla.broker.runtime.call_each import call_each
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import BREATH, Owner, Steps, TaskGroup
from ottla.broker.runtime.timers import Timer
from ottla.broker.topics.writer import draw_topic_id
from ottla.controller.core import Controller
from ottla.controller.effects import (
    Answer,
    Breathe,
    ClearDeletionMarkers,
    ClearNotifications,
    ClearPreferredElection,
    Connect,
    Decided,
    Disconnect,
    Effect,
    InOffice,
    KeepReassignments,
    NotificationKind,
    ReadTopics,
    ReadUncleanTopics,
    Refuse,
    RemoveTopics,
    Resign,
    Result,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    WriteNewTopics,
    WriteStates,
    WriteTopics,
)
from ottla.controller.events import (
    Breathed,
    Event,
    News,
    Outcome,
    RebalanceDue,
    ReplicasDeleted,
    ReplicasReported,
    Token,
    TopicsRemoved,
    UncleanTopicsRead,
)
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.wire.apis.leader_and_isr import LeaderAndIsrResponse
from ottla.wire.apis.stop_replica import StopReplicaResponse
from ottla.znodes import paths
from ottla.znodes.codec import encode_reassignment

log = logging.getLogger(__name__)

FIRST_REBALANCE_MS = 5_000
PARTITIONS_A_REQUEST = 1_000
"""How many partitions one LeaderAndIsr request names at most, unless it is a broker's first."""
MISTAKES = (
    AssertionError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    UnpackableNumber,
)
"""What a mistake of ours raises: it ends the term, so that another broker may be elected."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """Whom to tell: the result, or None when the term ended first; and whose request it is."""

    then: Callable[[Result | None], None]
    owner: Owner

    def tell(self, result: Result | None) -> None:
        """An answer that cannot be given does not end the term; the client that asked is hung up on."""
        try:
            self.then(result)
        except MISTAKES as mistake:
            log.exception("an answer failed result=%.200s", result)
            self.owner.task_failed(mistake)


class Term:
    """Carries out what the core decides, for as long as nobody else is elected."""

    def __init__(
        self,
        runtime: Runtime,
        links: PeerLinks,
        fence: Fence,
        decided: Callable[[Decided], None],
        ended: Callable[[str], None],
    ) -> None:
        """``decided`` hears of every decision that was written, ``ended`` why the term cannot go on."""
        self._runtime = runtime
        self._broker = runtime.identity.broker_id
        self.fence = fence
        self.core = Controller(self._broker, fence.epoch)
        self.is_over = False
        self.is_serving = False
        """Failover is done."""
        self.reads = ControllerReads(lambda: draw_topic_id(runtime.random))
        self.writes = ControllerWrites(fence, self.reads)
        self._requests = ControllerRequests(self._broker, fence.epoch)
        self._channels = Channels(links, runtime.timers, runtime.config.listeners)
        self._addressed: set[tuple[BrokerId, int]] = set()
        """The brokers that had a LeaderAndIsr request, each with the epoch of that life."""
        self._decided = decided
        self._ended = ended
        self._queue: deque[tuple[str, Duty]] = deque()
        self._hinted: set[str] = set()
        self._is_busy = False
        self._is_pumping = False
        self._waiters: dict[Token, Waiter] = {}
        self._wait_for_office: list[Callable[[bool], None]] = []
        self._next_token = 0
        self._rebalance: Timer | None = None
        self._duties = Duties(runtime, self.core.context, self.reads, self.writes, self.hint)
        self._tasks = TaskGroup(runtime.tasks, self._failed)

    # ---- life

    def begin(self) -> None:
        """Take office."""
        log.info("controller elected broker=%d epoch=%d", self._broker, self.fence.epoch)
        self._enqueue("failover", self._duties.take_office)

    def end(self, reason: str) -> None:
        """Nothing is done any more; who waits hears that this is not the controller."""
        if self.is_over:
            return
        self.is_over = True
        log.info("controller resigns broker=%d epoch=%d reason=%s", self._broker, self.fence.epoch, reason)
        self._queue.clear()
        self._tasks.cancel()
        self._duties.unwatch()
        self._channels.close("the controller resigned")
        if self._rebalance is not None:
            self._rebalance.cancel()
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            waiter.tell(None)
        self._tell_those_who_wait_for_office(False)

    def _failed(self, error: Exception) -> None:
        """An unexpected error ends the term: another broker may be able to go on."""
        self._ended(f"{type(error).__name__}: {error}")

    # ---- turns

    def hint(self, name: str, duty: Duty) -> None:
        """Something may have changed: look when its turn comes. A hint that waits already is enough."""
        if name not in self._hinted:
            self._hinted.add(name)
            self._enqueue(name, duty)

    def ask(
        self, make_event: Callable[[Token], News], then: Callable[[Result | None], None], owner: Owner
    ) -> None:
        """Somebody's request; ``then`` gets the result, or None when the term ends first."""
        self._next_token += 1
        event = make_event(self._next_token)
        self._waiters[self._next_token] = Waiter(then, owner)
        self.tell(event)

    def when_serving(self, then: Callable[[bool], None]) -> None:
        """``then`` gets True once failover is done, False when the term ends first."""
        if self.is_serving:
            then(True)
        else:
            self._wait_for_office.append(then)

    def _tell_those_who_wait_for_office(self, is_serving: bool) -> None:
        waiting, self._wait_for_office = self._wait_for_office, []
        call_each(waiting, is_serving)

    def tell(self, event: News) -> None:
        """News that need no reading."""
        self._enqueue(event.cause, lambda: _at_once(event))

    def _enqueue(self, name: str, duty: Duty) -> None:
        if self.is_over:
            return
        self._queue.append((name, duty))
        self._pump()

    def _pump(self) -> None:
        if self._is_pumping:
            return
        self._is_pumping = True
        while self._queue and not self._is_busy and not self.is_over:
            name, duty = self._queue.popleft()
            self._hinted.discard(name)
            self._is_busy = True
            self._tasks.spawn(self._turn(name, duty), self._turn_done)
        self._is_pumping = False

    def _turn_done(self, why_ended: TermEnded | None) -> None:
        if why_ended is not None:
            self._ended(str(why_ended))
            return
        self._is_busy = False
        self._pump()

    def _turn(self, name: str, duty: Duty) -> Steps[TermEnded | None]:
        """Read, decide, carry out; why the term must end, if it must."""
        try:
            yield from self._decide(name, duty)
        except TermEnded as why:
            return why
        return None

    def _decide(self, name: str, duty: Duty) -> Steps[None]:
        began_ms = self._runtime.clock.monotonic_ms()
        decided = 0
        try:
            news = yield from duty()
            name = name if news is None else news.cause
            event: Event | None = news
            while event is not None:
                effects = self.core.handle(event)
                event = None
                for effect in effects:
                    outcome = yield from self._carry_out(effect)
                    event = outcome if outcome is not None else event
                    decided += len(effect.decisions) if isinstance(effect, Decided) else 0
        except MISTAKES as mistake:
            log.exception("the controller cannot go on turn=%s", name)
            raise TermEnded(f"{type(mistake).__name__} in {name}: {mistake}") from mistake
        self._requests.forget_encodings()
        took_ms = self._runtime.clock.monotonic_ms() - began_ms
        if news is not None:
            log.info("turn cause=%r decided=%d ms=%d epoch=%d", name, decided, took_ms, self.fence.epoch)

    # ---- effects

    def _carry_out(self, effect: Effect) -> Steps[Outcome | None]:
        match effect:
            case WriteStates():
                return (yield from self.writes.write_states(effect.states))
            case WriteTopics():
                return (yield from self.writes.write_topics(effect.topics))
            case WriteNewTopics():
                return (yield from self.writes.write_new_topics(effect.topics))
            case RemoveTopics():
                yield from self.writes.remove_topics(effect.topics)
                self._duties.unwatch_topics(effect.topics)
                return TopicsRemoved()
            case ReadUncleanTopics():
                by_default = self._runtime.config.controller.unclean_leader_election_enable
                return UncleanTopicsRead((yield from read_unclean_topics(effect.topics, by_default)))
            case ReadTopics():
                return (yield from self.reads.read_standing(effect.names))
            case Breathe():
                yield BREATH
                return Breathed()
            case SendLeaderAndIsr():
                self._send_leader_and_isr(effect)
            case SendUpdateMetadata():
                for broker, request in self._requests.update_metadata(effect):
                    self._channels.send(broker, request, UPDATE_METADATA_VERSION, self._metadata_answered)
            case SendStopReplica():
                self._send_stop_replica(effect)
            case Connect():
                self._channels.connect(effect.broker)
            case Disconnect():
                self._channels.disconnect(effect.broker, effect.cause)
            case Answer():
                self._waiters.pop(effect.token).tell(effect.result)
            case Decided():
                self._decided(effect)
            case Refuse():
                log.warning("left alone what=%s reason=%s", effect.what, effect.why)
            case InOffice():
                self._in_office()
            case Resign():
                raise TermEnded(effect.reason)
            case _:
                yield from self._tidy(effect)
        return None

    def _tidy(
        self,
        effect: ClearDeletionMarkers | KeepReassignments | ClearPreferredElection | ClearNotifications,
    ) -> Steps[None]:
        match effect:
            case ClearDeletionMarkers():
                yield from self.writes.clear([paths.delete_topic(topic) for topic in effect.topics])
            case KeepReassignments() if effect.targets:
                yield from self.writes.put(paths.REASSIGN_PARTITIONS, encode_reassignment(effect.targets))
            case KeepReassignments():
                yield from self.writes.clear([paths.REASSIGN_PARTITIONS])
                self._duties.look_for_reassignments()
            case ClearPreferredElection():
                yield from self.writes.clear([paths.PREFERRED_REPLICA_ELECTION])
                self._duties.look_for_preferred_elections()
            case ClearNotifications():
                is_isr = effect.kind is NotificationKind.ISR_CHANGE
                parent = paths.ISR_CHANGE_NOTIFICATION if is_isr else paths.LOG_DIR_EVENT_NOTIFICATION
                yield from self.writes.clear([f"{parent}/{name}" for name in effect.names])

    def _in_office(self) -> None:
        self.is_serving = True
        context = self.core.context
        log.info(
            "controller serves broker=%d epoch=%d brokers=%d topics=%d partitions=%d",
            self._broker,
            self.fence.epoch,
            len(context.brokers),
            len(context.topics),
            len(context.partitions),
        )
        self._rebalance = self._runtime.timers.after(FIRST_REBALANCE_MS, self._rebalance_due)
        self._tell_those_who_wait_for_office(True)

    def _rebalance_due(self) -> None:
        config = self._runtime.config.controller
        if config.auto_leader_rebalance_enable:
            self.tell(RebalanceDue(config.leader_imbalance_per_broker_percentage))
        interval_ms = config.leader_imbalance_check_interval_seconds * 1_000
        self._rebalance = self._runtime.timers.after(interval_ms, self._rebalance_due)

    # ---- requests and their answers

    def _send_leader_and_isr(self, effect: SendLeaderAndIsr) -> None:
        """Split: a broker that makes thousands of logs at once would not answer ZooKeeper meanwhile.

        But the first time whole, if there are old partitions: after its first LeaderAndIsr an Apache broker
        believes to know all its partitions, and forgets the high watermarks of those that were not named.
        """
        life = (effect.broker, effect.broker_epoch)
        is_whole = life not in self._addressed and not all(entry.is_new for entry in effect.entries)
        self._addressed.add(life)
        size = len(effect.entries) if is_whole else PARTITIONS_A_REQUEST
        for begin in range(0, len(effect.entries), size):
            entries = effect.entries[begin : begin + size]
            self._send_split(SendLeaderAndIsr(effect.broker, effect.broker_epoch, entries, effect.cause))

    def _send_split(self, effect: SendLeaderAndIsr) -> None:
        request = self._requests.leader_and_isr(effect)
        topics = {entry.topic_id: entry.partition.topic for entry in effect.entries}

        def answered(response: LeaderAndIsrResponse) -> None:
            self._leader_and_isr_answered(effect, topics, response)

        self._channels.send(effect.broker, request, LEADER_AND_ISR_VERSION, answered)

    def _leader_and_isr_answered(
        self, effect: SendLeaderAndIsr, topics: dict[TopicId, str], response: LeaderAndIsrResponse
    ) -> None:
        if response.error_code != ErrorCode.NONE:
            log.warning(
                "leader and isr refused broker=%d error=%d cause=%s",
                effect.broker,
                response.error_code,
                effect.cause,
            )
            return
        failed = self.core.context.offline_replicas.get(effect.broker, ())
        offline: list[TopicPartition] = []
        online: list[TopicPartition] = []
        for topic in response.topics:
            name = topics.get(TopicId(topic.topic_id), "")
            for row in topic.partition_errors:
                if row.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    offline.append(TopicPartition(name, row.partition_index))
                elif failed and row.error_code == ErrorCode.NONE:
                    online.append(TopicPartition(name, row.partition_index))
        if offline or online:
            self.tell(ReplicasReported(effect.broker, effect.broker_epoch, tuple(offline), tuple(online)))

    def _metadata_answered(self, response: Any) -> None:
        if response.error_code != ErrorCode.NONE:
            log.warning("update metadata refused error=%d", response.error_code)

    def _send_stop_replica(self, effect: SendStopReplica) -> None:
        request = self._requests.stop_replica(effect)

        def answered(response: StopReplicaResponse) -> None:
            self._stop_replica_answered(effect, response)

        self._channels.send(effect.broker, request, STOP_REPLICA_VERSION, answered)

    def _stop_replica_answered(self, effect: SendStopReplica, response: StopReplicaResponse) -> None:
        deleting = [entry.partition for entry in effect.entries if entry.delete]
        errors = {
            TopicPartition(row.topic_name, row.partition_index): row.error_code
            for row in response.partition_errors
        }
        refused = {
            partition: None
            for partition in deleting
            if response.error_code != ErrorCode.NONE
            or errors.get(partition, ErrorCode.NONE) != ErrorCode.NONE
        }
        if refused:
            log.warning("replicas not deleted broker=%d partitions=%d", effect.broker, len(refused))
        dying = self.core.context.queued_for_deletion
        if any(partition.topic in dying for partition in deleting):
            deleted = tuple(partition for partition in deleting if partition not in refused)
            self.tell(ReplicasDeleted(effect.broker, effect.broker_epoch, deleted, tuple(refused)))


def _at_once(event: News) -> Found:
    yield from ()
    return event
