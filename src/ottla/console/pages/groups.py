"""Which group lags? Offsets, seconds, trend, and who stands still: verdicts over a window, no thresholds."""

import msgspec

from ottla.console.pages.frame import Frame, frame_of
from ottla.console.read.groups import Groups
from ottla.console.read.world import World
from ottla.insight.lag import WORST_FIRST, GroupLag
from ottla.insight.wording import counted, duration_text, named

ROWS_SHOWN = 100
PARTITIONS_SHOWN = 20


class PartitionLag(msgspec.Struct, frozen=True):
    """A group in one partition."""

    topic: str
    partition: int
    committed: int
    end: int
    lag: int
    verdict: str | None


class GroupRow(msgspec.Struct, frozen=True):
    """A group over all its partitions; ``None`` is not known yet."""

    group: str
    state: str
    lag: int
    verdict: str | None
    seconds_behind: float | None
    behind: str
    seconds_to_clear: float | None
    to_clear: str
    partitions: list[PartitionLag]
    partitions_more: int


class GroupsPage(msgspec.Struct, frozen=True):
    """The groups, the worst first."""

    frame: Frame
    search: str
    sentence: str
    mood: str
    found: int
    unread: int
    rows: list[GroupRow]


def groups_page(world: World, groups: Groups, search: str) -> GroupsPage:
    """From the windows that are there."""
    words = search.lower().split()
    names = [name for name in groups.states if all(word in name.lower() for word in words)]
    read = [(name, groups.lags[name]) for name in names if name in groups.lags]
    order = {verdict: place for place, verdict in enumerate(WORST_FIRST)}
    read.sort(key=lambda row: (order.get(row[1].verdict or "", len(order)), -row[1].lag, row[0]))
    bad = [name for name, whole in read if whole.verdict in WORST_FIRST[:2]]
    if bad:
        sentence = (
            f"{counted(len(bad), 'group')} {'falls' if len(bad) == 1 else 'fall'} behind: {named(bad)}."
        )
    else:
        sentence = "No group falls behind." if read else "There is no group that has committed offsets."
    return GroupsPage(
        frame_of(world, "Groups", "ottla consumer-groups --describe --all-groups"),
        search,
        sentence,
        "warn" if bad else "good",
        len(names),
        len(names) - len(read),
        [_row(groups, name, whole) for name, whole in read[:ROWS_SHOWN]],
    )


def _row(groups: Groups, name: str, whole: GroupLag) -> GroupRow:
    windows = groups.windows[name]
    parts = [
        PartitionLag(
            partition.topic,
            partition.partition,
            last.committed,
            last.end,
            window.lag,
            window.verdict(),
        )
        for partition, window in sorted(windows.items(), key=lambda item: (-item[1].lag, item[0]))
        if (last := window.last) is not None
    ]
    return GroupRow(
        name,
        groups.states.get(name, ""),
        whole.lag,
        whole.verdict,
        whole.seconds_behind,
        "–" if whole.seconds_behind is None else duration_text(whole.seconds_behind),
        whole.seconds_to_clear,
        "–" if whole.seconds_to_clear is None else duration_text(whole.seconds_to_clear),
        parts[:PARTITIONS_SHOWN],
        max(0, len(parts) - PARTITIONS_SHOWN),
    )
