"""A few brokers with toy logs around the real replication cores, driven line by line.

A toy log is the list of its records' (epoch, value); answers can be held back and delivered late.
"""

from dataclasses import dataclass

from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, Offset, TopicId
from ottla.replication import fetch_checks
from ottla.replication.effects import (
    AppendFetched,
    AssignEpoch,
    BackOff,
    FindLeaderOffset,
    FollowerEffect,
    FollowLeader,
    HighWatermarkAdvanced,
    LeaderEffect,
    ProposeIsr,
    RestartAt,
    StopFetching,
    TruncateTo,
)
from ottla.replication.events import (
    Elected,
    EpochEndOffset,
    IsrChangeAnswered,
    LeaderOffsetFound,
    PartitionFetched,
)
from ottla.replication.follower import PartitionFollower
from ottla.replication.leader import PartitionLeader
from support.bench.toy_epochs import ToyEpochs

LAG_TIME_MAX_MS = 30_000
TOPIC_ID = TopicId(bytes(16))


class Epochs(ToyEpochs):
    """Kafka's leader epoch cache, as a list."""

    def assign(self, epoch: int, start: int) -> None:
        if self.entries and self.entries[-1][0] == epoch and self.entries[-1][1] <= start:
            return
        self.entries = [entry for entry in self.entries if entry[0] < epoch and entry[1] < start]
        self.entries.append((epoch, start))

    def cut(self, offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry[1] < offset]


class Log:
    """Records as (epoch, value), from the log start on."""

    def __init__(self) -> None:
        self.log_start_offset = 0
        self.high_watermark = 0
        self.base = 0
        self.records: list[tuple[int, str]] = []
        self.epochs = Epochs()

    @property
    def end_offset(self) -> int:
        return self.base + len(self.records)

    def append(self, epoch: int, value: str) -> None:
        self.epochs.assign(epoch, self.end_offset)
        self.records.append((epoch, value))

    def truncate(self, offset: int) -> None:
        del self.records[max(offset - self.base, 0) :]
        self.epochs.cut(offset)
        self.high_watermark = min(self.high_watermark, offset)

    def restart(self, offset: int) -> None:
        self.records = []
        self.epochs = Epochs()
        self.base = self.log_start_offset = self.high_watermark = offset

    def __str__(self) -> str:
        shown = " ".join(f"{value}/{epoch}" for epoch, value in self.records) or "empty"
        return f"{shown} | start={self.log_start_offset} end={self.end_offset} hw={self.high_watermark}"


@dataclass
class Broker:
    """One replica."""

    id: BrokerId
    log: Log
    leader: PartitionLeader | None = None
    follower: PartitionFollower | None = None
    epoch: int = 100
    is_up: bool = True
    held: tuple[PartitionFetched, list[tuple[int, str]]] | None = None
    proposal: ProposeIsr | None = None


class ReplicationWorld:
    """The commands of the scenarios."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.now_ms = 0
        self.min_isr = 1
        self.partition_epoch = 0
        self.happened: list[str] = []

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        places = [word for word in words if "=" not in word]
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        self.happened = []
        getattr(self, f"do_{name}")(*places, **settings)
        return self.happened

    def tell(self, line: str) -> None:
        self.happened.append(line)

    @property
    def live(self) -> frozenset[BrokerId]:
        return frozenset(broker.id for broker in self.brokers.values() if broker.is_up)

    # --- commands -------------------------------------------------------------------------------

    def do_brokers(self, *ids: str, min_isr: str = "1") -> None:
        self.brokers = {int(i): Broker(BrokerId(int(i)), Log()) for i in ids}
        self.min_isr = int(min_isr)

    def do_elect(self, who: str, *, epoch: str, isr: str, to: str = "") -> None:
        """The controller's LeaderAndIsr, to all that are up or only to some."""
        self.partition_epoch += 1
        members = tuple(BrokerId(int(i)) for i in isr.split(","))
        told = [int(i) for i in to.split(",")] if to else [b for b in self.brokers if self.brokers[b].is_up]
        for broker_id in told:
            broker = self.brokers[broker_id]
            if broker_id == int(who):
                self._lead(broker, LeaderEpoch(int(epoch)), members)
            else:
                self._follow(broker, BrokerId(int(who)), LeaderEpoch(int(epoch)))

    def do_write(self, who: str, *values: str) -> None:
        broker = self.brokers[int(who)]
        assert broker.leader is not None
        for value in values:
            broker.log.append(broker.leader.leader_epoch, value)
        self._perform_leader(broker, broker.leader.appended(broker.log.end_offset, self.now_ms, self.live))

    def do_fetch(self, who: str, *, hold: str = "no", max: str = "1000") -> None:
        """A follower fetches and gets the answer at once, or it is held back."""
        broker = self.brokers[int(who)]
        follower = broker.follower
        assert follower is not None
        if not follower.may_fetch(self.now_ms):
            self.tell(f"{who} does not fetch: {follower.phase.name}")
            return
        answer, records = self._serve(broker, follower, int(max))
        if hold == "yes":
            broker.held = (answer, records)
        else:
            self._deliver(broker, answer, records)

    def do_deliver(self, who: str) -> None:
        broker = self.brokers[int(who)]
        assert broker.held is not None
        answer, records = broker.held
        broker.held = None
        self._deliver(broker, answer, records)

    def do_crash(self, who: str, *, lose: str = "0", wipe: str = "no") -> None:
        """kill -9; the unflushed tail or the whole disk may go with it. The HW is a checkpoint."""
        broker = self.brokers[int(who)]
        broker.is_up = False
        broker.leader = broker.follower = None
        if wipe == "yes":
            broker.log = Log()
        else:
            hw = broker.log.high_watermark
            broker.log.truncate(broker.log.end_offset - int(lose))
            broker.log.high_watermark = min(hw, broker.log.end_offset)

    def do_start(self, who: str, *, hw: str = "") -> None:
        broker = self.brokers[int(who)]
        broker.is_up = True
        broker.epoch += 1
        if hw:
            broker.log.high_watermark = int(hw)

    def do_wait(self, ms: str) -> None:
        self.now_ms += int(ms)

    def do_lag(self, who: str) -> None:
        broker = self.brokers[int(who)]
        assert broker.leader is not None
        self._perform_leader(broker, broker.leader.check_lag(self.now_ms))

    def do_controller(self, who: str, answer: str) -> None:
        """The controller answers the leader's pending AlterPartition."""
        broker = self.brokers[int(who)]
        proposal = broker.proposal
        assert proposal is not None
        error = ErrorCode.NONE if answer == "ok" else ErrorCode[answer]
        if error is ErrorCode.NONE:
            self.partition_epoch += 1
        event = IsrChangeAnswered(
            proposal.leader_epoch,
            proposal.change,
            error,
            proposal.leader_epoch,
            self.partition_epoch,
            proposal.isr,
        )
        if broker.leader is None:
            self.tell(f"{who} leads no more")
            return
        self._perform_leader(broker, broker.leader.isr_change_answered(event, self.now_ms, self.live))
        self.tell(f"{who} isr={','.join(map(str, broker.leader.isr.committed))}")

    def do_delete(self, who: str, *, before: str) -> None:
        """Retention or DeleteRecords on one replica."""
        log = self.brokers[int(who)].log
        del log.records[: int(before) - log.base]
        log.base = log.log_start_offset = int(before)

    def do_show(self, *who: str) -> None:
        for broker_id in who or map(str, self.brokers):
            self.tell(f"{broker_id}: {self.brokers[int(broker_id)].log}")

    # --- the leader's side ----------------------------------------------------------------------

    def _lead(self, broker: Broker, epoch: LeaderEpoch, isr: tuple[BrokerId, ...]) -> None:
        if broker.leader is None:
            broker.leader = PartitionLeader(
                broker.id, min_insync_replicas=self.min_isr, lag_time_max_ms=LAG_TIME_MAX_MS
            )
        broker.follower = None
        election = Elected(
            leader_epoch=epoch,
            partition_epoch=self.partition_epoch,
            isr=isr,
            replicas=tuple(BrokerId(b) for b in self.brokers),
            end_offset=Offset(broker.log.end_offset),
            high_watermark=Offset(broker.log.high_watermark),
        )
        self._perform_leader(broker, broker.leader.elected(election, self.now_ms, self.live))

    def _perform_leader(self, broker: Broker, effects: "object") -> None:
        assert isinstance(effects, list | tuple)
        for effect in effects:
            self._perform_leader_effect(broker, effect)

    def _perform_leader_effect(self, broker: Broker, effect: LeaderEffect) -> None:
        match effect:
            case AssignEpoch(epoch, start):
                broker.log.epochs.assign(epoch, start)
                self.tell(f"{broker.id} leads epoch {epoch} from {start}")
            case HighWatermarkAdvanced(to):
                broker.log.high_watermark = to
                self.tell(f"{broker.id} high watermark {to}")
            case ProposeIsr():
                broker.proposal = effect
                self.tell(f"{broker.id} proposes isr={','.join(map(str, effect.isr))} ({effect.reason})")

    def _serve(
        self, broker: Broker, follower: PartitionFollower, limit: int
    ) -> tuple[PartitionFetched, list[tuple[int, str]]]:
        """What the leader answers; an error, a diverging epoch, or records."""
        asked = follower.next_fetch()
        answer = PartitionFetched(asked.leader_epoch, asked.fetch_offset, 0, -1, -1, 0)
        at = self.brokers[follower.leader]
        if not at.is_up or at.leader is None:
            answer.error = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return answer, []
        log = at.log
        answer.error = fetch_checks.check_leader_epoch(asked.leader_epoch, at.leader.leader_epoch)
        if not answer.error:
            found = fetch_checks.check_position(
                log.epochs,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=log.log_start_offset,
                end_offset=log.end_offset,
            )
            if isinstance(found, EpochEndOffset):
                answer.diverging = found
            else:
                answer.error = found
        if answer.error or answer.diverging is not None:
            return answer, []
        answer.high_watermark, answer.log_start_offset = log.high_watermark, log.log_start_offset
        effects = at.leader.follower_fetched(
            broker.id, asked.fetch_offset, asked.log_start_offset, self.now_ms, self.live, broker.epoch
        )
        self._perform_leader(at, effects)
        records = log.records[asked.fetch_offset - log.base :][:limit]
        answer.record_bytes = len(records)
        return answer, records

    # --- the follower's side --------------------------------------------------------------------

    def _follow(self, broker: Broker, leader: BrokerId, epoch: LeaderEpoch) -> None:
        broker.leader = None
        broker.follower = PartitionFollower(leader, epoch, TOPIC_ID, broker.log)
        for effect in broker.follower.started():
            self._perform_follower(broker, effect, None, [])

    def _deliver(self, broker: Broker, answer: PartitionFetched, records: list[tuple[int, str]]) -> None:
        if broker.follower is None:
            self.tell(f"{broker.id} follows no more")
            return
        effects = broker.follower.fetched(answer)
        for effect in effects:
            self._perform_follower(broker, effect, answer, records)

    def _perform_follower(
        self,
        broker: Broker,
        effect: FollowerEffect,
        answer: PartitionFetched | None,
        records: list[tuple[int, str]],
    ) -> None:
        follower, log = broker.follower, broker.log
        assert follower is not None
        match effect:
            case AppendFetched():
                assert answer is not None
                for epoch, value in records:
                    log.append(epoch, value)
                self.tell(f"{broker.id} appends {len(records)}")
                for following in follower.appended(answer):
                    self._perform_follower(broker, following, answer, records)
            case FollowLeader(high_watermark, log_start_offset):
                log.high_watermark = high_watermark
                if log_start_offset > log.log_start_offset:
                    log.log_start_offset = log_start_offset
                self.tell(f"{broker.id} high watermark {high_watermark}")
            case TruncateTo(offset, reason):
                log.truncate(offset)
                self.tell(f"{broker.id} cuts to {offset} ({reason})")
            case RestartAt(offset, reason):
                log.restart(offset)
                self.tell(f"{broker.id} restarts at {offset} ({reason})")
            case FindLeaderOffset(earliest):
                self._find_offset(broker, follower, earliest)
            case BackOff(reason):
                follower.back_off(self.now_ms + 1_000)
                self.tell(f"{broker.id} backs off ({reason})")
            case StopFetching(reason):
                follower.stop()
                self.tell(f"{broker.id} stops fetching ({reason})")

    def _find_offset(self, broker: Broker, follower: PartitionFollower, earliest: bool) -> None:
        log = self.brokers[follower.leader].log
        offset = Offset(log.log_start_offset if earliest else log.end_offset)
        self.tell(f"{broker.id} asks for the leader's {'start' if earliest else 'end'}: {offset}")
        found = LeaderOffsetFound(follower.leader_epoch, earliest, ErrorCode.NONE, offset)
        for effect in follower.found_leader_offset(found):
            self._perform_follower(broker, effect, None, [])
