"""What a power cut leaves of a simulated broker's disks."""

from random import Random

from ottla.sim.machine.disks import Disks

NAMES = [f"/data/{number:020d}.log" for number in range(0, 100, 10)]


def test_no_file_survives_without_those_made_before_it() -> None:
    """Seed 573041532: a log's first segment was lost and its second was not, so that it began later."""
    left: set[int] = set()
    for seed in range(200):
        disks = Disks(Random(seed), ["/data"])
        disks.make_directory("/data")
        disks.sync_directory("/data")
        for name in NAMES:
            disks.write_file(name, b"records")
        disks.power_cut()
        survivors = [name for name in NAMES if disks.exists(name)]
        assert survivors == NAMES[: len(survivors)], seed
        left.add(len(survivors))
    assert len(left) > 5
