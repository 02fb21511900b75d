"""Offsets that are dropped while a commit is on its way: memory and log must tell the same afterwards."""

import pytest

from ottla.coordinator.group.committed import CommittedOffset
from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.effects import Answer, Append, Effect
from ottla.coordinator.group.loader import Loader
from ottla.coordinator.group.offsets import Commit
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from unit.coordinator.test_many_groups import START, a_shard

ORDERS_0 = TopicPartition("orders", 0)
GROUP = "readers"


class Scripted:
    """A shard whose writes are committed when the test says so, in their order."""

    def __init__(self) -> None:
        self.shard: GroupShard = a_shard()
        self.log: list[Append] = []
        self.answers: list[Answer] = []

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self.log.append(effect)
            else:
                self.answers.append(effect)

    def commit(self, offset: int) -> None:
        row = {ORDERS_0: CommittedOffset(offset, -1, "", 0)}
        self.take(self.shard.commit(offset, Commit(GROUP, "", None, -1, row, {}), START))

    def settle(self) -> None:
        for write in [each for each in self.log if each.ticket in self.shard.state.writes]:
            self.take(self.shard.appended(write.ticket, ErrorCode.NONE, START))

    def remembered(self) -> int:
        [topic] = self.shard.fetch(GROUP, [ORDERS_0], require_stable=False).topics
        return int(topic.partitions[0].committed_offset)

    def reloaded(self) -> int:
        loader = Loader()
        loader.apply((record.key, record.value) for write in self.log for record in write.records)
        while not loader.make_some(10):
            pass
        group = loader.groups().get(GROUP)
        return -1 if group is None or ORDERS_0 not in group.offsets else group.offsets[ORDERS_0].offset


def drop(script: Scripted, how: str) -> None:
    match how:
        case "offset":
            script.take(script.shard.delete_offsets(GROUP, [ORDERS_0], START)[2])
        case "group":
            script.take(script.shard.delete_group(GROUP, START)[1])
        case "topic":
            script.take(script.shard.drop_partitions([ORDERS_0], START))


@pytest.mark.parametrize("how", ["offset", "group", "topic"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_commit_under_way_does_not_outlive_the_drop_behind_it(how: str, is_first: bool) -> None:
    script = Scripted()
    if not is_first:
        script.commit(5)
        script.settle()
    script.commit(10)

    drop(script, how)
    script.settle()

    assert (script.remembered(), script.reloaded()) == (-1, -1)
    assert not script.shard.state.writes


@pytest.mark.parametrize("how", ["offset", "topic"])
def test_a_commit_after_the_drop_counts(how: str) -> None:
    script = Scripted()
    script.commit(5)
    drop(script, how)
    script.commit(7)

    script.settle()

    assert (script.remembered(), script.reloaded()) == (7, 7)
    assert not script.shard.groups[GROUP].forgotten
