"""What must hold of a consumer group, whatever its members hear: owners, generations, commits."""

from dataclasses import dataclass

from ottla.model.ids import TopicPartition
from ottla.sim.truth.history import Violation
from ottla.sim.world import World


@dataclass(frozen=True, slots=True)
class Who:
    """A member by the id that its coordinator gave it, and the instance it is if it is static."""

    member_id: str
    instance_id: str | None = None

    @property
    def owner(self) -> str:
        """The owner of a share: a static member that comes back with a new id keeps its share."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class Known:
    """What was known when a member sent a request."""

    at_us: int
    generation: int
    floors: dict[TopicPartition, int]
    """The highest offsets that this member must be told of."""
    fenced: dict[str, int]
    """Member ids that have successors, and the brokers that acknowledged these."""


@dataclass(frozen=True, slots=True)
class StableOffset:
    """An offset that a member was told as one that no commit of its predecessors will change any more."""

    offset: int
    generation: int
    predecessors: frozenset[str]


class GroupTruth:
    """Judges one group by what its members were told.

    A generation counts from the first member that was given its share of it: by then the coordinator
    has written it down, and no later coordinator may go back behind it. A static member's new id counts
    from then on, too, and whoever had an id of the same instance before is fenced for good.
    """

    def __init__(self, world: World, group: str) -> None:
        self.group = group
        self.generation = -1
        self.is_void = False
        """The log of the group's coordinator may have lost records: nothing is asked any more."""
        self.commits = 0
        self._world = world
        self._seen: set[int] = set()
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self._shares: dict[tuple[int, str], list[TopicPartition]] = {}
        self._floor: dict[TopicPartition, int] = {}
        self._stable: dict[TopicPartition, StableOffset] = {}
        self._born: dict[str, dict[str, int]] = {}
        """The member ids that an instance was told, and when."""
        self._fenced: dict[str, int] = {}

    def known(self, who: Who) -> Known:
        """Called when a request is sent. Of static members only the one that is surely the last of its
        instance may rely on all commits: others may ask a deposed coordinator."""
        floors = dict(self._floor) if self._is_surely_the_last(who) else {}
        return Known(self._world.now_us, self.generation, floors, dict(self._fenced))

    def _is_surely_the_last(self, who: Who) -> bool:
        ids = self._born.get(who.instance_id, {}) if who.instance_id is not None else {}
        others = [each for each in ids if each != who.member_id]
        return who.member_id not in self._fenced and all(each in self._fenced for each in others)

    # -- members -----------------------------------------------------------------------------

    def joined(self, who: Who, generation: int, broker: int, asked: Known) -> None:
        """A member was told its id and its generation. If others work in that already it is written down."""
        if who.instance_id is not None:
            self._born.setdefault(who.instance_id, {}).setdefault(who.member_id, self._world.now_us)
            if generation in self._seen:
                self._succeeds(who, broker, asked)

    def _succeeds(self, who: Who, broker: int, asked: Known) -> None:
        """Whatever this instance was called before the member asked, it is called so no more."""
        if who.instance_id is None or who.member_id in self._fenced:
            return
        for other, born_us in self._born[who.instance_id].items():
            if other != who.member_id and other not in self._fenced and born_us < asked.at_us:
                self._fenced[other] = broker
                self._world.tell(f"group {self.group}: {who.member_id} is in the place of {other}")

    def owned(
        self,
        generation: int,
        who: Who,
        partitions: list[TopicPartition],
        broker: int,
        joined: Known,
        asked: Known,
    ) -> None:
        """A member was given its share of a generation."""
        self.heard(who, broker, asked)
        if generation not in self._seen:
            if generation < self.generation and not self.is_void:
                raise Violation(f"generation {generation} of {self.group} came after {self.generation}")
            self._seen.add(generation)
            self.generation = max(self.generation, generation)
            self._world.tell(f"group {self.group}: generation {generation}")
        for partition in partitions:
            other = self._owners.setdefault((generation, partition), who.owner)
            if other != who.owner and not self.is_void:
                raise Violation(
                    f"two owners of {partition} in generation {generation}: {other} and {who.owner}"
                )
        share = self._shares.setdefault((generation, who.owner), partitions)
        if share != partitions and not self.is_void:
            raise Violation(
                f"share of {who.owner} in generation {generation} was {share} and is {partitions}"
            )
        self._succeeds(who, broker, joined)

    def heard(self, who: Who, broker: int, asked: Known) -> None:
        """A coordinator took a member for alive. One that was deposed may not know of the member's successor,
        but the one that acknowledged the successor must."""
        if asked.fenced.get(who.member_id) == broker and not self.is_void:
            raise Violation(f"fenced: {who.member_id} has a successor, and broker {broker} heard it again")

    # -- offsets -----------------------------------------------------------------------------

    def fetched(
        self,
        generation: int,
        who: Who,
        partition: TopicPartition,
        offset: int,
        asked: Known,
        *,
        is_stable: bool,
    ) -> None:
        """A member asked for a committed offset. Only the newest generation counts:
        others may have asked a coordinator that does not know that it was deposed."""
        floor = asked.floors.get(partition, -1)
        if generation != self.generation or self.is_void:
            return
        if offset < floor:
            raise Violation(
                f"committed offset lost: {self.group} committed {floor} of {partition} and is told {offset}"
            )
        self._floor[partition] = max(self._floor.get(partition, -1), offset)
        if is_stable and who.member_id not in asked.fenced:
            self._stable[partition] = StableOffset(offset, generation, frozenset(asked.fenced))

    def committed(
        self, generation: int, who: Who, partition: TopicPartition, offset: int, broker: int, asked: Known
    ) -> None:
        """A commit was acknowledged, for which it must be in the log: no deposed coordinator can do that."""
        if not self.is_void:
            if generation < asked.generation:
                raise Violation(f"a commit of generation {generation} was taken in {asked.generation}")
            if who.member_id in asked.fenced:
                raise Violation(f"fenced: {who.member_id} has a successor, and its commit was taken")
            told = self._stable.get(partition, StableOffset(offset, generation, frozenset()))
            is_predecessor = generation < told.generation or who.member_id in told.predecessors
            if is_predecessor and offset > told.offset:
                raise Violation(
                    f"unstable: {told.offset} of {partition} was told as stable, and {who.member_id}"
                    f" of generation {generation} had {offset} on its way"
                )
        self._succeeds(who, broker, asked)
        self.commits += 1
        self._floor[partition] = max(self._floor.get(partition, -1), offset)
