"""The stories of consumer groups in this folder, played with the real shard."""

from pathlib import Path

import pytest

from scenarios.group.world import GroupWorld
from support.bench.scenarios import check_scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(Path(__file__).parent), ids=lambda path: path.stem)
def test_groups_behave_as_recorded(path: Path) -> None:
    check_scenario(path, GroupWorld)
