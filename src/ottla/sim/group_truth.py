"""What must hold of a consumer group, whatever its members hear: owners, generations, commits."""

from ottla.model.ids import TopicPartition
from ottla.sim.history import Violation
from ottla.sim.world import World


class GroupTruth:
    """Judges one group by what its members were told.

    A generation counts from the first member that was given its share of it: by then the coordinator
    has written it down, and no later coordinator may go back behind it.
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
        self._floor: dict[TopicPartition, int] = {}

    def owned(self, generation: int, member: str, partitions: list[TopicPartition]) -> None:
        """A member was given its share of a generation."""
        if generation not in self._seen:
            if generation < self.generation and not self.is_void:
                raise Violation(f"generation {generation} of {self.group} came after {self.generation}")
            self._seen.add(generation)
            self.generation = max(self.generation, generation)
            self._world.tell(f"group {self.group}: generation {generation}")
        for partition in partitions:
            other = self._owners.setdefault((generation, partition), member)
            if other != member and not self.is_void:
                raise Violation(f"two owners of {partition} in generation {generation}: {other} and {member}")

    def floor(self, partition: TopicPartition) -> int:
        """The highest commit that was acknowledged by now."""
        return self._floor.get(partition, -1)

    def fetched(self, generation: int, partition: TopicPartition, offset: int, floor: int) -> None:
        """A member asked for a committed offset. Only the newest generation's word counts:
        others may have asked a coordinator that was deposed and does not know it."""
        if offset < floor and generation == self.generation and not self.is_void:
            raise Violation(
                f"committed offset lost: {self.group} committed {floor} of {partition} and is told {offset}"
            )

    def committed(self, generation: int, newest: int, partition: TopicPartition, offset: int) -> None:
        """A commit was acknowledged; ``newest`` was the generation known when it was sent."""
        if generation < newest and not self.is_void:
            raise Violation(f"a commit of generation {generation} was taken in generation {newest}")
        self.commits += 1
        self._floor[partition] = max(self._floor.get(partition, -1), offset)
