"""Groups of real clients as processes, while members and coordinators die: nothing is lost or undone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ottla.launch.cluster import Cluster
from support.members.drilling import PARTITIONS, a_drill, coordinator_killed
from support.members.programs import KINDS, Kind

SESSION_SECONDS = 3
STATIC_SESSION_SECONDS = 6
"""A failover must be shorter: librdkafka forgets its member id when its session time-out has passed without
an answer, and the next heartbeat of a static member, with an empty id, is fenced by any coordinator."""

EVERY_WAY = [
    pytest.param(kind, strategy, is_static, id=f"{kind.name}-{strategy}{'-static' * is_static}")
    for kind in KINDS.values()
    for strategy in kind.strategies
    for is_static in ((False, True) if kind.may_be_static else (False,))
]
IN_SHORT = ("ottla", "librdkafka")
IN_FULL = pytest.mark.full("a failover for each kind of client")
IN_SHORT_OR_FULL = [
    pytest.param(kind, id=name, marks=() if name in IN_SHORT else IN_FULL) for name, kind in KINDS.items()
]


@pytest.mark.parametrize("kind", IN_SHORT_OR_FULL)
def test_a_group_outlives_its_coordinator_and_a_member(cluster: Cluster, kind: Kind, tmp_path: Path) -> None:
    with a_drill(cluster, kind, kind.strategies[-1], tmp_path) as drill:
        drill.join(2)
        drill.settled(PARTITIONS)
        drill.progresses()

        drill.join()
        with coordinator_killed(cluster, drill):
            drill.settled(PARTITIONS)
            drill.lose(drill.members[0]).kill()
            drill.settled(PARTITIONS)
            drill.progresses()
        drill.finish()


@pytest.mark.long
@pytest.mark.parametrize(("kind", "strategy", "is_static"), EVERY_WAY)
def test_nothing_is_lost_or_undone_whatever_happens_to_members(
    cluster: Cluster, kind: Kind, strategy: str, is_static: bool, tmp_path: Path
) -> None:
    def names(*instances: str) -> list[str | None]:
        return [instance if is_static else None for instance in instances]

    session = STATIC_SESSION_SECONDS if is_static else SESSION_SECONDS
    settings = {"session.timeout.ms": str(session * 1_000)}
    with a_drill(cluster, kind, strategy, tmp_path) as drill:
        for instance in names("a", "b", "c"):
            drill.join(instance=instance, **settings)
        drill.settled(PARTITIONS)
        drill.progresses()

        paused = drill.members[0]
        paused.pause()
        time.sleep(2 * session)
        drill.lose(paused)
        drill.settled(PARTITIONS)
        paused.resume()
        drill.members.append(paused)
        drill.settled(PARTITIONS)

        drill.lose(drill.members[0]).kill()
        for instance in names("b" if is_static else "d"):
            drill.join(instance=instance, **settings)
        with coordinator_killed(cluster, drill):
            drill.settled(PARTITIONS)
            drill.progresses()
        drill.lose(drill.members[0]).leave()
        drill.settled(PARTITIONS)
        with coordinator_killed(cluster, drill):
            drill.progresses()
        drill.finish()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_groups_of_one_to_twenty_members_gather(cluster: Cluster, kind: Kind, tmp_path: Path) -> None:
    with a_drill(cluster, kind, kind.strategies[-1], tmp_path) as drill:
        for more in (1, 1, 5, 13):
            drill.join(more)
            drill.settled(PARTITIONS, 240)
        drill.progresses()
        while len(drill.members) > 2:
            drill.lose(drill.members[0]).kill()
        drill.settled(PARTITIONS, 120)
        drill.finish()
