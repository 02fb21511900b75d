"""A pytest plugin that plants one bug for a whole run: ``OTTLA_PLANT=name pytest -p simulation.plant …``."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from simulation.hunt import PLANTS

_planted = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    _planted.enter_context(PLANTS[os.environ["OTTLA_PLANT"]]())


def pytest_unconfigure(config: pytest.Config) -> None:
    _planted.close()
