"""The replication stories of this folder, played with the real leader and follower."""

from pathlib import Path

import pytest

from scenarios.replication.world import ReplicationWorld
from support.bench.scenarios import check_scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(Path(__file__).parent), ids=lambda path: path.stem)
def test_replicas_behave_as_recorded(path: Path) -> None:
    check_scenario(path, ReplicationWorld)
