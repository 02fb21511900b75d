"""The stories of the controller in this folder, played with the real core."""

from pathlib import Path

import pytest

from support.bench.controller_world import ControllerWorld
from support.bench.scenarios import check_scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(Path(__file__).parent), ids=lambda path: path.stem)
def test_the_controller_decides_as_recorded(path: Path) -> None:
    check_scenario(path, ControllerWorld)
