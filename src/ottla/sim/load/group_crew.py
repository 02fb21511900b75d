"""Runs the members of a group in the simulated world: processes that die are started again."""

from collections.abc import Callable
from itertools import count

from ottla.model.ids import TopicPartition
from ottla.sim.load.clients import Surroundings
from ottla.sim.load.groups import Member
from ottla.sim.truth.groups import GroupTruth
from ottla.sim.world import SECOND

SUPERVISOR_US = SECOND
"""How long after the last process of an instance ended the next one starts."""


class Crew:
    """The processes of one group. A static member is known by its instance id, whichever process it is."""

    def __init__(
        self,
        around: Surroundings,
        truth: GroupTruth,
        partitions: Callable[[], list[TopicPartition]],
    ) -> None:
        self.members: list[Member] = []
        """The processes that live; of one instance there may be two for a while."""
        self._around = around
        self._truth = truth
        self._partitions = partitions
        self._numbers = count()

    @property
    def static(self) -> list[Member]:
        return [member for member in self.members if member.instance_id is not None]

    def start(self, instance_id: str | None = None) -> None:
        """One more process."""
        member = Member(
            self._around,
            f"member-{next(self._numbers)}",
            self._truth,
            self._partitions,
            instance_id,
            self._fenced,
        )
        self.members.append(member)
        member.start()

    def kill(self, member: Member, away_us: int | None) -> None:
        """A process dies without leaving its group, and another comes for it after a while, or never."""
        self.members.remove(member)
        member.die()
        if away_us is not None:
            self._around.world.after(away_us, lambda: self.start(member.instance_id))

    def _fenced(self, member: Member) -> None:
        """A process was told that another has its place: it ends. Should there be none, somebody starts one:
        a coordinator that was deposed may have given out an id that its successor does not know."""
        self.members.remove(member)

        def look() -> None:
            if all(each.instance_id != member.instance_id for each in self.members):
                self.start(member.instance_id)

        self._around.world.after(SUPERVISOR_US, look)
