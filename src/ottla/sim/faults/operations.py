"""What operators and group members do while faults strike: also drawn from the plan."""

from collections.abc import Callable
from random import Random

from ottla.model.ids import TopicPartition
from ottla.sim.cluster import Cluster
from ottla.sim.faults.admin import PREFERRED, UNCLEAN
from ottla.sim.load.groups import Member
from ottla.sim.load.own_workload import OwnMember
from ottla.sim.plan import TopicKind
from ottla.sim.world import MILLISECOND, SECOND

PARTITIONS_MAX = 4
OPERATIONS = (
    "alter settings",
    "delete records",
    "elect preferred",
    "elect unclean",
    "grow topic",
    "look around",
    "member dies",
    "member doubles",
    "member hangs",
    "member is removed",
    "member leaves",
    "move to another directory",
    "program dies",
    "program doubles",
    "program freezes",
    "reassign",
)


class Operations:
    """One operation a call; whether it could be begun."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.admin = cluster.admin

    def by_name(self) -> dict[str, Callable[[Random], bool]]:
        return {
            "alter settings": self._alter_settings,
            "delete records": self._delete_records,
            "elect preferred": self._elect_preferred,
            "elect unclean": self._elect_unclean,
            "grow topic": self._grow,
            "look around": self._look_around,
            "member dies": self._member_dies,
            "member doubles": self._member_doubles,
            "member hangs": self._member_hangs,
            "member is removed": self._member_is_removed,
            "member leaves": self._member_leaves,
            "move to another directory": self._move_directory,
            "program dies": self._program_dies,
            "program doubles": self._program_doubles,
            "program freezes": self._program_freezes,
            "reassign": self._reassign,
        }

    def _some(self, kind: TopicKind) -> list[TopicPartition]:
        return [each for each in self.cluster.partitions() if self.cluster.kind_of(each.topic) is kind]

    def _reassign(self, luck: Random) -> bool:
        """Move a partition to other brokers, or in another order, or take a move back."""
        partition = luck.choice(sorted(self.cluster.assignments()))
        count = luck.choice([3, 3, 2]) if partition.topic in ("topic-0", "retained-0") else 3
        replicas = tuple(luck.sample(sorted(self.cluster.brokers), count))
        self.admin.scripts.play(self.admin.reassign(partition, replicas))
        if luck.random() < 0.3:
            delay_us = luck.randint(0, 3) * SECOND
            cancel = self.admin.reassign(partition, None)
            self.cluster.world.after(delay_us, lambda: self.admin.scripts.play(cancel))
        return True

    def _move_directory(self, luck: Random) -> bool:
        """A replica moves to the other disk of its broker, while it is written to, compacted, moved away."""
        assignments = self.cluster.assignments()
        partition = luck.choice(sorted(assignments))
        broker = self.cluster.brokers.get(luck.choice(assignments[partition]))
        if broker is None or len(broker.disk.disks) < 2:
            return False
        directory = luck.choice(sorted(broker.disk.disks))
        self.admin.scripts.play(self.admin.move_directory(broker.config.broker_id, partition, directory))
        return True

    def _elect_preferred(self, luck: Random) -> bool:
        self.admin.scripts.play(self.admin.elect(sorted(self.cluster.assignments()), PREFERRED))
        return True

    def _elect_unclean(self, luck: Random) -> bool:
        partitions = self._some(TopicKind.UNCLEAN)
        if partitions:
            self.admin.scripts.play(self.admin.elect(partitions, UNCLEAN))
        return bool(partitions)

    def _grow(self, luck: Random) -> bool:
        topic = self.cluster.topic_of("topic-0")
        count = len(topic["partitions"]) if topic is not None else PARTITIONS_MAX
        if count >= PARTITIONS_MAX:
            return False
        self.admin.scripts.play(self.admin.grow("topic-0", count + 1))
        return True

    def _delete_records(self, luck: Random) -> bool:
        partitions = self._some(TopicKind.RETAINED)
        if not partitions:
            return False
        partition = luck.choice(partitions)
        ends = [offset for (name, offset) in self.cluster.history.seen if name == partition]
        if not ends:
            return False
        self.admin.scripts.play(self.admin.delete_records(partition, luck.randint(1, max(ends) + 1)))
        return True

    def _alter_settings(self, luck: Random) -> bool:
        name, values = luck.choice(
            [
                ("segment.bytes", ("1024", "4096")),
                ("flush.messages", ("1", "1000")),
                ("segment.ms", ("2000",)),
            ]
        )
        self.admin.scripts.play(self.admin.alter_topic("topic-0", name, luck.choice(values)))
        return True

    def _look_around(self, luck: Random) -> bool:
        partition = luck.choice(self.cluster.partitions())
        is_clean = partition not in self.cluster.history.unclean
        self.cluster.onlooker.scripts.play(self.cluster.onlooker.look(partition, luck, is_clean=is_clean))
        return True

    def _member_hangs(self, luck: Random) -> bool:
        members: list[Member | OwnMember] = [*self.cluster.members, *self.cluster.own_members]
        if not members:
            return False
        luck.choice(members).sleeps_until_us = self.cluster.world.now_us + luck.randint(1, 8) * SECOND
        return True

    def _member_dies(self, luck: Random) -> bool:
        """It comes back before its session is over, or long after, or never: then the others must go on."""
        if not self.cluster.members:
            return False
        member = luck.choice(self.cluster.members)
        away_us = luck.choice([200, 1_000, 2_500, 5_000, 9_000]) * MILLISECOND
        is_for_ever = luck.random() < 0.2 and len(self.cluster.members) > 1
        self.cluster.crew.kill(member, None if is_for_ever else away_us)
        return True

    def _member_doubles(self, luck: Random) -> bool:
        """A second process with the instance id of one that lives: the first must be fenced."""
        if not self.cluster.crew.static:
            return False
        self.cluster.crew.start(luck.choice(self.cluster.crew.static).instance_id)
        return True

    def _member_is_removed(self, luck: Random) -> bool:
        """An operator takes a static member out of its group, by its instance id alone."""
        if not self.cluster.crew.static:
            return False
        instance_id = luck.choice(self.cluster.crew.static).instance_id
        assert instance_id is not None, "a static member has one"
        self.admin.scripts.play(self.admin.remove_member(self.cluster.group.group, instance_id))
        return True

    def _member_leaves(self, luck: Random) -> bool:
        if not self.cluster.members:
            return False
        luck.choice(self.cluster.members).wants_to_leave = True
        return True

    def _program_dies(self, luck: Random) -> bool:
        """One with a transactional id; the next process of the id aborts what it left open."""
        crew = self.cluster.transactions
        if not crew.programs:
            return False
        crew.kill(luck.choice(crew.programs), luck.choice([100, 500, 3_000, 8_000]) * MILLISECOND)
        return True

    def _program_doubles(self, luck: Random) -> bool:
        """A second process with the transactional id of one that lives, which is a zombie from then on."""
        crew = self.cluster.transactions
        if not crew.programs:
            return False
        crew.start(luck.choice(crew.programs).transactional_id)
        return True

    def _program_freezes(self, luck: Random) -> bool:
        """Short against its transaction's time-out, or longer; some are replaced meanwhile."""
        crew = self.cluster.transactions
        if not crew.programs:
            return False
        program = luck.choice(crew.programs)
        program.freeze(luck.choice([300, 1_500, 4_000, 9_000]) * MILLISECOND)
        if luck.random() < 0.4:
            crew.start(program.transactional_id)
        return True
