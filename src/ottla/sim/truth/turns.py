"""What must hold of the brokers at any time, by the world's own look into their logs."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.sim.load.churn import PREFIX as CHURNED
from ottla.sim.machine.broker import SimBroker
from ottla.sim.truth.history import History, Sent, Violation
from ottla.sim.world import MILLISECOND

PATIENCE = 2
"""How many times ``replica.lag.time.max.ms`` a member of an ISR may be known to be behind."""
BROKER_PREFIX = "broker-"
EVERY = 8
"""A broker is checked after this many turns."""


class TurnChecks:
    """One leader an epoch; watermarks and metadata never go back; acknowledged means replicated."""

    def __init__(
        self,
        brokers: Mapping[int, SimBroker],
        history: History,
        state_of: Callable[[TopicPartition], dict[str, Any] | None],
        is_forgetful: Callable[[SimBroker], bool],
        min_insync_replicas: int,
    ) -> None:
        self._brokers = brokers
        self._history = history
        self._state_of = state_of
        self._is_forgetful = is_forgetful
        self._min_insync_replicas = min_insync_replicas
        self._turns: dict[int, int] = {}
        self._leaders: dict[tuple[bytes, TopicPartition, int], int] = {}
        self._marks: dict[tuple[bytes, TopicPartition, int, int, int], tuple[int, int, int]] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._behind_ms: dict[tuple[TopicPartition, int, int, int], int] = {}
        self._news: dict[tuple[int, int, bytes, int], Any] = {}

    def after_turn(self, broker: SimBroker) -> None:
        number = broker.config.broker_id
        turns = self._turns[number] = self._turns.get(number, 0) + 1
        if turns % EVERY == 0:
            for partition in broker.node.partitions.all():
                self._look(broker, number, partition)
            self._check_news(broker, number)

    def _check_news(self, broker: SimBroker, number: int) -> None:
        """What the controller told a broker is never replaced by older news, of it or of one before it."""
        for topic in broker.node.metadata.topics.values():
            for index, info in topic.partitions.items():
                key = (number, broker.life, topic.topic_id, index)
                before = self._news.get(key)
                if info is before:
                    continue
                if before is not None and (info.leader_epoch, info.zk_version) < (
                    before.leader_epoch,
                    before.zk_version,
                ):
                    raise Violation(
                        f"broker {number} knew {topic.name}-{index} at epoch {before.leader_epoch} version"
                        f" {before.zk_version} and was told of {info.leader_epoch} version {info.zk_version}"
                    )
                self._news[key] = info

    def _look(self, broker: SimBroker, number: int, partition: Any) -> None:
        name, log = partition.name, partition.log
        watermark, start, end = int(log.high_watermark), int(log.log_start_offset), int(log.end_offset)
        if not start <= watermark <= end:
            raise Violation(
                f"the watermark {watermark} of {name} is outside of its log [{start}, {end}) on {number}"
            )
        if partition.leader is None:
            self._check_followed(partition, number)
            return
        epoch = int(partition.leader_epoch)
        known = self._leaders.setdefault((partition.topic_id, name, epoch), number)
        if known != number:
            raise Violation(f"two leaders of {name} in epoch {epoch}: {known} and {number}")
        key = (partition.topic_id, name, epoch, number, broker.life)
        before = self._marks.get(key, (0, 0, 0))
        # A look must not touch the disk: before its producers are read, a log is not asked.
        stable = int(log.last_stable_offset) if log._producers is not None else before[2]
        if watermark < before[0]:
            raise Violation(f"the watermark of {name} went back to {watermark} on {number}")
        if start < before[1]:
            raise Violation(f"the start of {name} went back to {start} on {number}")
        if stable < before[2]:
            raise Violation(f"the last stable offset of {name} went back to {stable} on {number}")
        if watermark != before[0]:
            self._check_strong_isr(partition, watermark)
        self._check_lag(broker, partition)
        self._marks[key] = (watermark, start, stable)

    @staticmethod
    def _check_followed(partition: Any, number: int) -> None:
        """A follower takes nothing of an epoch that it was not told to follow."""
        epochs, told = partition.log._epochs, int(partition.leader_epoch)
        if partition.follower is not None and epochs is not None and epochs.latest_epoch > told:
            raise Violation(
                f"{number} follows {partition.name} in epoch {told} and has records of {epochs.latest_epoch}"
            )

    def _check_lag(self, broker: SimBroker, partition: Any) -> None:
        """A follower that stays behind is dropped from the ISR, or its leader has asked for that."""
        leader = partition.leader
        now_ms = broker.world.now_ms
        for member in leader.followers:
            key = (partition.name, int(partition.leader_epoch), broker.life, member)
            if member not in leader.isr.committed:
                self._behind_ms.pop(key, None)  # when it joins again it has as long as any
        for member in leader.isr.committed:
            key = (partition.name, int(partition.leader_epoch), broker.life, member)
            progress = leader.followers.get(member)
            is_waiting = leader.isr.pending is not None or progress is None
            if is_waiting or progress.is_caught_up(leader.end_offset, now_ms, leader.lag_time_max_ms):
                self._behind_ms.pop(key, None)
                continue
            since_ms = max(self._behind_ms.setdefault(key, now_ms), broker.awake_since_us // MILLISECOND)
            if now_ms - since_ms > PATIENCE * leader.lag_time_max_ms:
                raise Violation(
                    f"{member} is in the ISR of {partition.name} and behind since {since_ms / 1000:.1f} s"
                )

    def _check_strong_isr(self, partition: Any, watermark: int) -> None:
        """Whatever is below the leader's watermark is on every member of the ISR in ZooKeeper."""
        name = partition.name
        state = self._state_of(name)
        if state is None or state["leader_epoch"] != partition.leader_epoch or name in self._history.unclean:
            return
        if name.topic.startswith(CHURNED):
            return  # it may be on its way out, on some brokers sooner than on others
        written_in = partition.log.epochs.epoch_for_offset(watermark - 1)
        for member in state["isr"]:
            if member not in self._brokers:
                continue
            if not self.holds(self._brokers[member], name, watermark - 1):
                raise Violation(
                    f"{member} is in the ISR of {name} and lacks {watermark - 1}, which is committed"
                )
            if self._differs(self._brokers[member], name, watermark - 1, written_in):
                raise Violation(
                    f"{member} is in the ISR of {name} and has another record at {watermark - 1},"
                    f" which is committed"
                )

    @staticmethod
    def _differs(broker: SimBroker, name: TopicPartition, offset: int, written_in: int) -> bool:
        """Was what this replica has there written in another epoch? Where it cannot be seen, it was not."""
        partition = broker.node.partitions.find(*name) if broker.node is not None else None
        if partition is None or written_in < 0 or broker.exit is not None:
            return False
        log = partition.log
        epochs = log._epochs  # None before they are read: a look must not touch the disk
        if epochs is None or not log.log_start_offset <= offset < log.end_offset:
            return False
        return bool(epochs.epoch_for_offset(offset) not in (-1, written_in))

    def holds(self, broker: SimBroker, name: TopicPartition, offset: int) -> bool:
        """Does this replica have that offset? Where it cannot be seen, it is believed."""
        if self._is_forgetful(broker) or broker.node is None or broker.exit is not None:
            return True
        log_dirs = broker.node.log_dirs
        if not broker.node.is_started or log_dirs.offline:
            return True
        log = log_dirs.get(name)
        return log is not None and log.end_offset > offset

    def on_acked(self, sent: Sent) -> None:
        """acks=all: at least as many replicas as ``min.insync.replicas`` hold the record."""
        if sent.offset is None or sent.partition in self._history.unclean:
            return
        holders = [
            n for n, broker in self._brokers.items() if self.holds(broker, sent.partition, sent.offset)
        ]
        if len(holders) < self._min_insync_replicas:
            raise Violation(
                f"acknowledged below min ISR: {sent.value!r} at {sent.partition}@{sent.offset}"
                f" is on {holders} only"
            )

    def on_answer(self, broker: SimBroker, peer: str) -> None:
        """What a client may be told of now stays committed, though the next leader may not know it yet."""
        if not peer.startswith(BROKER_PREFIX):
            for partition in broker.node.partitions.all():
                mark = int(partition.log.high_watermark)
                if mark > self._committed.get(partition.name, 0):
                    self._committed[partition.name] = mark

    def is_committed(self, name: TopicPartition, offset: int) -> bool:
        """May a consumer see this offset? Some broker must have known it to be below the watermark when it
        answered a client; or one that had it lost its disk, and all others of the ISR have it."""
        if offset < self._committed.get(name, 0) or name in self._history.unclean:
            return True
        logs = {}
        for number, broker in self._brokers.items():
            partition = broker.node.partitions.find(*name)
            if partition is not None:
                logs[number] = partition.log
        in_sync = (self._state_of(name) or {}).get("isr", ())
        left = [logs[member] for member in in_sync if member in logs]
        return 0 < len(left) < len(in_sync) and all(offset < log.end_offset for log in left)
