"""Offsets that are dropped while a commit is on its way: memory and log must tell the same afterwards."""

import pytest

from ottla.coordinator.group.core import GroupShard
from ottla.coordinator.group.requests import Commit
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.shard import Answer, Append, Effect, Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from unit.coordinator.test_many_groups import START, a_shard

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
GROUP = "readers"


class Scripted:
    """A shard whose writes are committed when the test says so, in their order.

    Tombstones have acks=0: in a broker they are committed before the commits in front of them.
    """

    def __init__(self, *, tombstones_first: bool = False) -> None:
        self.tombstones_first = tombstones_first
        self.shard: GroupShard = a_shard()
        self.log: list[Append] = []
        self.answers: list[Answer] = []

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self.log.append(effect)
                if self.tombstones_first and effect.acks == 0:
                    self.take(self.shard.appended(effect.ticket, ErrorCode.NONE, START))
            else:
                self.answers.append(effect)

    def commit(self, offset: int, partition: TopicPartition = ORDERS_0) -> None:
        row = {partition: CommittedOffset(offset, -1, "", 0)}
        self.take(self.shard.commit(offset, Commit(GROUP, "", None, -1, row, {}), START))

    def settle(self) -> None:
        for write in [each for each in self.log if each.ticket in self.shard.writes]:
            self.take(self.shard.appended(write.ticket, ErrorCode.NONE, START))

    def settle_first(self) -> None:
        first = next(each for each in self.log if each.ticket in self.shard.writes)
        self.take(self.shard.appended(first.ticket, ErrorCode.NONE, START))

    def remembered(self, partition: TopicPartition = ORDERS_0) -> int:
        [topic] = self.shard.fetch(GROUP, [partition], require_stable=False).topics
        return int(topic.partitions[0].committed_offset)

    def is_unstable(self) -> bool:
        [topic] = self.shard.fetch(GROUP, [ORDERS_0], require_stable=True).topics
        return topic.partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT

    def reloaded(self, partition: TopicPartition = ORDERS_0) -> int:
        loaded = a_shard()
        loaded.apply(record for write in self.log for record in write.records)
        for _ in loaded.restore():
            pass
        group = loaded.groups.get(GROUP)
        return -1 if group is None or partition not in group.offsets else group.offsets[partition].offset


def drop(script: Scripted, how: str) -> None:
    match how:
        case "offset":
            script.take(script.shard.delete_offsets(GROUP, [ORDERS_0], START)[2])
        case "group":
            script.take(script.shard.delete_group(GROUP, START)[1])
        case "topic":
            script.take(script.shard.partitions_deleted([ORDERS_0], START))


@pytest.mark.parametrize("how", ["offset", "group", "topic"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("tombstones_first", [True, False])
def test_a_commit_under_way_does_not_outlive_the_drop_behind_it(
    how: str, is_first: bool, tombstones_first: bool
) -> None:
    script = Scripted(tombstones_first=tombstones_first)
    if not is_first:
        script.commit(5)
        script.settle()
    script.commit(10)

    drop(script, how)
    script.settle()

    assert (script.remembered(), script.reloaded()) == (-1, -1)
    assert not len(script.shard.writes)


@pytest.mark.parametrize("how", ["offset", "topic"])
@pytest.mark.parametrize("tombstones_first", [True, False])
def test_a_commit_after_the_drop_counts(how: str, tombstones_first: bool) -> None:
    script = Scripted(tombstones_first=tombstones_first)
    script.commit(5)
    drop(script, how)
    script.commit(7)

    script.settle()

    assert (script.remembered(), script.reloaded()) == (7, 7)
    assert not script.shard.writes.targets(GROUP)


@pytest.mark.parametrize("how", ["offset", "topic"])
@pytest.mark.parametrize("tombstones_first", [True, False])
def test_a_group_is_not_buried_with_its_last_offset_while_another_is_on_its_way(
    how: str, tombstones_first: bool
) -> None:
    script = Scripted(tombstones_first=tombstones_first)
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


def test_a_group_whose_tombstones_cannot_be_written_is_as_it_was() -> None:
    script = Scripted()
    script.commit(5)
    script.settle()

    drop(script, "group")
    refused = script.shard.appended(script.log[-1].ticket, ErrorCode.MESSAGE_TOO_LARGE, START)
    script.log.pop()

    assert refused == []
    assert (script.remembered(), script.reloaded()) == (5, 5)
    script.commit(6)
    script.settle()
    assert script.remembered() == 6


@pytest.mark.parametrize("how", ["offset", "group", "topic"])
def test_what_waits_for_a_marker_is_dropped_for_good(how: str) -> None:
    """Kafka forgets it in memory alone: the next load brings it back."""
    script = Scripted()
    row = {ORDERS_0: CommittedOffset(5, -1, "", 0)}
    commit = Commit(GROUP, "", None, -1, row, {}, Producer(7, 0))
    script.take(script.shard.commit(1, commit, START))
    script.settle()
    assert script.is_unstable()

    drop(script, how)
    script.settle()
    script.shard.end_transaction(7, is_commit=True)

    assert script.remembered() == -1
    loaded = a_shard()
    for write in script.log:
        loaded.apply(write.records, write.producer.producer_id if write.producer else None)
    loaded.end_transaction(7, is_commit=True)
    assert GROUP not in loaded.groups or ORDERS_0 not in loaded.groups[GROUP].offsets


def test_a_group_whose_only_offset_waits_for_a_marker_does_not_expire() -> None:
    script = Scripted()
    row = {ORDERS_0: CommittedOffset(5, -1, "", 0)}
    script.take(script.shard.commit(1, Commit(GROUP, "", None, -1, row, {}, Producer(7, 0)), START))
    script.settle()

    script.take(script.shard.expire_offsets(START))

    assert GROUP in script.shard.groups
