"""Programs on Ottla's own client: producers, a reader and a group's members, judged by what they are told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ottla.client.config import ConsumerConfig, ProducerConfig
from ottla.client.engine.tasks import Operation
from ottla.client.errors import BrokerError, ClientError, LogTruncated, OffsetOutOfRange
from ottla.client.fetching.fetcher import FetchCore
from ottla.client.group.config import MembershipConfig
from ottla.client.group.core import GroupConsumerCore
from ottla.client.producing.batches import Delivery
from ottla.client.producing.producer import ProducerCore
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.record import Record
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.own_client import OwnClient
from ottla.sim.truth.history import History, Sent, Violation
from ottla.sim.world import MILLISECOND

HURRY = 6
PATIENT_MS = 3_600_000
HASTY_MS = 4_000
SESSION_MS = 3_000
BEAT_MS = 700
POLL_MS_MAX = 5_000
STRATEGIES = (("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",))


class OwnProducer(OwnClient):
    """Sends to all partitions of a topic, a handful of records at a time. A hasty one gives records up, and
    must go on without writing any twice or out of order."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        partitions: list[TopicPartition],
        history: History,
        pace_us: int,
    ) -> None:
        super().__init__(around, name)
        self.partitions = partitions
        self.history = history
        self._pace_us = pace_us
        self._order = 0
        delivery_ms = PATIENT_MS if self.world.happens(0.5) else HASTY_MS
        config = ProducerConfig(
            batch_size=self.world.chance.choice([200, 16_384]),
            linger_ms=self.world.chance.choice([0, 0, 20]),
            max_in_flight_requests_per_connection=self.world.between(1, 5),
            delivery_timeout_ms=delivery_ms,
            max_block_ms=delivery_ms,
        )
        self.core = ProducerCore(self.engine, config)

    @property
    def is_idle(self) -> bool:
        return self.is_stopped and not self.core.buffered_bytes

    def start(self) -> None:
        if self.is_stopped:
            return
        self.enter(self._send)
        is_busy = self.world.now_us < self.world.busy_until_us
        pace_us = self._pace_us // HURRY if is_busy else self._pace_us
        self.world.after(pace_us + self.world.between(0, pace_us), self.start)

    def _send(self) -> None:
        for _ in range(self.world.between(1, 5)):
            self._order += 1
            partition = self.world.chance.choice(self.partitions)
            sent = Sent(f"{self.host}/{self._order}".encode(), self.host, self._order, partition)
            self.history.will_send(sent)
            delivery = self.core.send(partition.topic, Record(None, sent.value), partition.partition)
            delivery.when_done(partial(self._decided, sent))

    def _decided(self, sent: Sent, delivery: Delivery) -> None:
        if delivery.error is not None:
            self.world.note(b"given up %d" % sent.order)
            return
        if delivery.partition != sent.partition:
            raise Violation(f"{sent.value!r} went to {delivery.partition} instead of {sent.partition}")
        self.history.acked(sent, delivery.offset if delivery.offset >= 0 else None)
        self.world.note(b"%d@%d" % (sent.order, delivery.offset))


@dataclass(slots=True)
class Reading:
    """How far one partition was read, and what was in it."""

    host: str
    partition: TopicPartition
    position: int = 0
    log: list[tuple[int, bytes]] = field(default_factory=list)

    def back_to(self, offset: int) -> None:
        self.position = min(self.position, offset)
        while self.log and self.log[-1][0] >= offset:
            self.log.pop()


class OwnReader(OwnClient):
    """Reads all partitions of a topic; goes back now and then, and leaves some aside for a while."""

    def __init__(
        self,
        around: Surroundings,
        partitions: list[TopicPartition],
        history: History,
        is_committed: Callable[[TopicPartition, int], bool],
    ) -> None:
        super().__init__(around, "own-reader")
        self.history = history
        self._is_committed = is_committed
        self.readings = {each: Reading(self.host, each) for each in partitions}
        config = ConsumerConfig(
            auto_offset_reset="none",
            max_partition_fetch_bytes=self.world.chance.choice([300, 1 << 20]),
            isolation_level=self.world.chance.choice(["read_committed", "read_uncommitted"]),
        )
        self.core = FetchCore(self.engine, config)

    def start(self) -> None:
        self.enter(lambda: self.core.assign(dict.fromkeys(self.readings, 0)))
        self._go_on()

    def _go_on(self) -> None:
        self.enter(self._turn)
        self.world.after(self.world.between(20, 40 if self.is_stopped else 400) * MILLISECOND, self._go_on)

    def _turn(self) -> None:
        self._read()
        if self.is_stopped:
            self.core.pause(self.readings, is_paused=False)
        elif self.world.happens(0.05):
            partition = self.world.chance.choice(sorted(self.readings))
            if self.world.happens(0.5):
                self.core.pause([partition], is_paused=self.world.happens(0.5))
            else:
                back_to = self.world.between(0, self.readings[partition].position)
                self.core.seek(partition, back_to)
                self.readings[partition].back_to(back_to)

    def _read(self) -> None:
        try:
            taken = self.core.take(self.world.chance.choice([1, 7, 500]))
        except (OffsetOutOfRange, LogTruncated) as error:
            if error.partition not in self.history.unclean:
                raise Violation(f"{self.host}: {error}") from error
            self.core.seek(error.partition, 0)
            self.readings[error.partition].back_to(0)
            return
        except ClientError as error:
            raise Violation(f"{self.host} cannot read on: {type(error).__name__}: {error}") from error
        for partition, records in taken.items():
            reading = self.readings[partition]
            for record in records:
                value = record.value or b""
                if record.offset < reading.position and partition not in self.history.unclean:
                    raise Violation(f"{self.host} was given {partition}@{record.offset} again")
                self.history.was_read(partition, record.offset, value, self.host)
                reading.log.append((record.offset, value))
                reading.position = record.offset + 1
            self.world.note(b"%d" % reading.position)
            if not self._is_committed(partition, reading.position - 1):
                raise Violation(f"uncommitted: {self.host} was given {partition}@{reading.position - 1}")


class GroupReading:
    """What a group's members were given of a topic, together: each record at least once, none again that an
    earlier generation had committed, no partition to two members in one generation."""

    def __init__(self, history: History, group: str) -> None:
        self.history = history
        self.group = group
        self.generation = -1
        """The newest that a member was given its share of."""
        self.is_void = False
        """The log of the group's coordinator may have lost records: nothing is asked any more."""
        self.commits = 0
        self.given: dict[TopicPartition, set[int]] = {}
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self._floors: dict[TopicPartition, dict[int, int]] = {}
        """The highest offset that each generation committed."""

    def owned(self, generation: int, member: str, partitions: frozenset[TopicPartition]) -> None:
        self.generation = max(self.generation, generation)
        for partition in partitions:
            other = self._owners.setdefault((generation, partition), member)
            if other != member and not self.is_void:
                raise Violation(f"two owners of {partition} in generation {generation}: {other} and {member}")

    def was_given(self, partition: TopicPartition, record: Record, generation: int, member: str) -> None:
        self.history.was_read(partition, record.offset, record.value or b"", member)
        self.given.setdefault(partition, set()).add(record.offset)
        floors = self._floors.get(partition, {})
        floor = max((offset for known, offset in floors.items() if known < generation), default=0)
        if record.offset < floor and not self.is_void and partition not in self.history.unclean:
            raise Violation(
                f"again: {member} was given {partition}@{record.offset} in generation {generation}, though"
                f" {floor} was committed before it"
            )

    def committed(self, offsets: dict[TopicPartition, int], generation: int, newest: int) -> None:
        """A commit was acknowledged; ``newest`` was the generation known when it was sent."""
        if generation < newest and not self.is_void:
            raise Violation(f"a commit of generation {generation} was taken in generation {newest}")
        self.commits += 1
        for partition, offset in offsets.items():
            floors = self._floors.setdefault(partition, {})
            floors[generation] = max(floors.get(generation, 0), offset)


class OwnMember(OwnClient):
    """A member that polls, commits what it has polled, hangs and comes back."""

    def __init__(
        self,
        around: Surroundings,
        number: int,
        topic: str,
        reading: GroupReading,
        strategies: tuple[str, ...],
    ) -> None:
        super().__init__(around, f"own-member-{number}")
        self.reading = reading
        self.sleeps_until_us = 0
        """Until then the program does not poll; the client beats on for it, up to a time."""
        self._is_committing = False
        self._topic = topic
        self._membership = MembershipConfig(
            group_instance_id=self.host if self.world.happens(0.2) else None,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=BEAT_MS,
            max_poll_interval_ms=POLL_MS_MAX,
            partition_assignment_strategy=strategies,
            enable_auto_commit=False,
        )
        self._share: tuple[int, frozenset[TopicPartition]] = (-1, frozenset())
        self.core = self._joining()

    def _joining(self) -> GroupConsumerCore:
        config = ConsumerConfig(auto_offset_reset="earliest")
        return GroupConsumerCore(self.engine, self.reading.group, [self._topic], config, self._membership)

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.core.membership.owned

    @property
    def is_settled(self) -> bool:
        membership = self.core.membership
        return membership.is_stable and membership.generation == self.reading.generation

    def enter(self, run: Callable[[], object]) -> None:
        super().enter(run)
        membership = self.core.membership
        if membership.is_stable and self._share != (share := (membership.generation, membership.owned)):
            self._share = share
            self.world.note(b"%d" % membership.generation)
            # A static member that was started again has its old share, in the same generation, by a new id.
            owner = membership.config.group_instance_id or membership.member_id
            self.reading.owned(membership.generation, owner, membership.owned)

    def start(self) -> None:
        if self.sleeps_until_us > self.world.now_us:
            self.world.after(self.sleeps_until_us - self.world.now_us, self.start)
            return
        self.enter(self._poll)
        self.world.after(self.world.between(20, 600) * MILLISECOND, self.start)

    def _poll(self) -> None:
        try:
            taken = self.core.take(self.world.chance.choice([1, 20, 500]))
        except ClientError as error:
            if not isinstance(error, BrokerError) or error.code != ErrorCode.FENCED_INSTANCE_ID:
                raise Violation(
                    f"{self.host} is out of its group: {type(error).__name__}: {error}"
                ) from error
            # A coordinator that was deposed gave a static member an id that its successor does not know, in
            # Kafka too: somebody starts the program again.
            self.core = self._joining()
            return
        # While it joins it knows of a generation that may never be: its coordinator may die before it writes.
        generation = self._share[0]
        for partition, records in taken.items():
            for record in records:
                self.reading.was_given(partition, record, generation, self.host)
        if taken and not self._is_committing and self.world.happens(0.6):
            self._is_committing = True
            self.engine.spawn(self._commit())

    def _commit(self) -> Operation[None]:
        core, newest = self.core, self.reading.generation
        membership, generation = core.membership, core.membership.generation
        known = core.fetching.positions()
        offsets = {each: at.offset for each, at in known.items() if each in membership.owned}
        try:
            yield from core.commit(offsets)
        except ClientError as error:
            self.world.note(type(error).__name__.encode())
        else:
            if membership.generation == generation:
                self.reading.committed(offsets, generation, newest)
        self._is_committing = False
