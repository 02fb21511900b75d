"""Work over many groups is done in portions, so that others get their turn."""

from __future__ import annotations

from ottla.config.group import GroupConfig
from ottla.coordinator.group.core import GROUPS_PER_PORTION, OFFSETS_PER_PORTION, GroupShard
from ottla.coordinator.group.stored.committed import CommittedOffset
from ottla.coordinator.group.stored.records import offset_record
from ottla.coordinator.shard import Append, Moment
from ottla.model.ids import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)
INTERVAL_MS = 1_000
START = Moment(0, 0)


def a_loaded_shard(group_count: int) -> GroupShard:
    """Each group has one offset that expires at once."""
    config = GroupConfig(offsets_retention_check_interval_ms=INTERVAL_MS, offsets_retention_minutes=0)
    shard = GroupShard(config, str)
    offset = CommittedOffset(1, -1, "", 0)
    shard.apply(offset_record(str(number), ORDERS_0, offset) for number in range(group_count))
    for _ in shard.restore():
        pass
    shard.loaded(START)
    return shard


def test_groups_are_restored_in_portions() -> None:
    shard = a_loaded_shard(3 * GROUPS_PER_PORTION)

    assert sum(1 for _ in shard.restore()) == 3
    assert len(shard.groups) == 3 * GROUPS_PER_PORTION


def test_an_unloaded_shard_is_freed_in_portions() -> None:
    shard = a_loaded_shard(3 * GROUPS_PER_PORTION)
    shard.unload(START)

    left = [(shard.free_some(), len(shard.groups)) for _ in range(3)]

    assert left == [(True, 2 * GROUPS_PER_PORTION), (True, GROUPS_PER_PORTION), (False, 0)]


def test_expiry_visits_every_group_once_and_in_portions() -> None:
    shard = a_loaded_shard(OFFSETS_PER_PORTION)
    visited: list[list[str]] = []

    now_ms = INTERVAL_MS
    for _ in range(2):
        assert shard.next_deadline_ms() == now_ms
        effects = shard.tick(Moment(now_ms, now_ms))
        visited.append([effect.reason for effect in effects if isinstance(effect, Append)])
        now_ms += 1

    assert [len(reasons) for reasons in visited] == [OFFSETS_PER_PORTION // 2] * 2
    assert len({reason for reasons in visited for reason in reasons}) == OFFSETS_PER_PORTION
    assert shard.next_deadline_ms() == 2 * INTERVAL_MS
