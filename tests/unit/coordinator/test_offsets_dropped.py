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
ORDERS_1 = TopicPartition("orders", 1)
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

    def commit(self, offset: int, partition: TopicPartition = ORDERS_0) -> None:
        row = {partition: CommittedOffset(offset, -1, "", 0)}
        self.take(self.shard.commit(offset, Commit(GROUP, "", None, -1, row, {}), START))

    def settle(self) -> None:
        for write in [each for each in self.log if each.ticket in self.shard.state.writes]:
            self.take(self.shard.appended(write.ticket, ErrorCode.NONE, START))

    def settle_first(self) -> None:
        first = next(each for each in self.log if each.ticket in self.shard.state.writes)
        self.take(self.shard.appended(first.ticket, ErrorCode.NONE, START))

    def remembered(self, partition: TopicPartition = ORDERS_0) -> int:
        [topic] = self.shard.fetch(GROUP, [partition], require_stable=False).topics
        return int(topic.partitions[0].committed_offset)

    def is_unstable(self) -> bool:
        [topic] = self.shard.fetch(GROUP, [ORDERS_0], require_stable=True).topics
        return topic.partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT

    def reloaded(self, partition: TopicPartition = ORDERS_0) -> int:
        loader = Loader()
        loader.apply((record.key, record.value) for write in self.log for record in write.records)
        while not loader.make_some(10):
            pass
        group = loader.groups().get(GROUP)
        return -1 if group is None or partition not in group.offsets else group.offsets[partition].offset


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


@pytest.mark.parametrize("how", ["offset", "topic"])
def test_a_group_is_not_buried_with_its_last_offset_while_another_is_on_its_way(how: str) -> None:
    script = Scripted()
    script.commit(5)
    script.settle()
    script.commit(10, ORDERS_1)

    drop(script, how)
    script.settle()

    assert (script.remembered(ORDERS_1), script.reloaded(ORDERS_1)) == (10, 10)


def test_of_two_commits_on_their_way_the_first_does_not_make_the_offset_stable() -> None:
    script = Scripted()
    script.commit(5)
    script.commit(6)

    script.settle_first()
    said = [script.remembered(), script.is_unstable()]
    script.settle_first()

    assert said == [5, True]
    assert [script.remembered(), script.is_unstable()] == [6, False]
