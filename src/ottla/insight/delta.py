"""What changed: between two pictures, and by one record of ``__ottla_decisions``."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ottla.insight.history.records import is_decision, partition_of
from ottla.insight.picture import PartitionSeen, Picture
from ottla.insight.wording import joined
from ottla.model.ids import TopicPartition


def changes(before: Picture, now: Picture) -> list[str]:
    """What happened between two pictures, in words; causes before their effects."""
    events = []
    if before.controller != now.controller:
        events.append(f"controller: broker {before.controller} -> {now.controller}")
    epochs = (before.controller_epoch, now.controller_epoch)
    if None not in epochs and epochs[0] != epochs[1]:
        events.append(f"controller epoch {epochs[0]} -> {epochs[1]}")
    events += [f"broker {number} is gone" for number in sorted(before.live - now.live)]
    events += [f"broker {number} is here" for number in sorted(now.live - before.live)]
    shifts = []
    for name, partition in sorted(now.partitions.items()):
        was = before.partitions.get(name)
        if was is None:
            events.append(f"{name} created, led by {partition.leader}")
            continue
        if was.leader != partition.leader:
            events.append(f"{name} leader {was.leader} -> {partition.leader}")
        if set(was.isr) != set(partition.isr):
            shifts.append(f"{name} in sync {joined(was.isr)} -> {joined(partition.isr)}")
    events += shifts
    events += [f"{name} deleted" for name in sorted(before.partitions.keys() - now.partitions.keys())]
    return events


def advanced(picture: Picture, rows: Iterable[dict[str, Any]]) -> Picture:
    """The picture after these decisions, as far as they are newer than it and about partitions it knows."""
    changed: dict[TopicPartition, PartitionSeen] = {}
    epoch = picture.controller_epoch
    for row in rows:
        after = row.get("after")
        if not is_decision(row) or after is None:
            continue
        epoch = max(epoch or 0, int(row["controller_epoch"]))
        name = partition_of(row)
        seen = changed.get(name) or picture.partitions.get(name)
        if seen is None or after["leader_epoch"] < seen.leader_epoch:
            continue
        changed[name] = seen._replace(
            leader=after["leader"], leader_epoch=after["leader_epoch"], isr=tuple(after["isr"])
        )
    if not changed:
        return picture if epoch == picture.controller_epoch else replace(picture, controller_epoch=epoch)
    return replace(picture, controller_epoch=epoch, partitions={**picture.partitions, **changed})
