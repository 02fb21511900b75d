"""The stories of transactions in this folder, played with the real shard."""

from pathlib import Path

import pytest

from scenarios.txn.world import TransactionWorld
from support.bench.scenarios import check_scenario, scenario_files


@pytest.mark.parametrize("path", scenario_files(Path(__file__).parent), ids=lambda path: path.stem)
def test_transactions_behave_as_recorded(path: Path) -> None:
    check_scenario(path, TransactionWorld)
