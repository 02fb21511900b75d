"""Spark's master is checked before Spark is started for it."""

from __future__ import annotations

import pytest

from ottla.cli.pipeline.run import require_master
from ottla.cli.shared.refusal import UsageRefused


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2,3]",
        "local-cluster[2,1,1024]",
        "spark://here:7077",
        "yarn",
        "k8s://https://x",
    ],
)
def test_a_master_of_sparks_is_taken(master: str) -> None:
    require_master(master)


@pytest.mark.parametrize("master", ["", "foo", "localhost:7077", "mesos://here"])
def test_another_is_refused_with_those_that_there_are(master: str) -> None:
    with pytest.raises(UsageRefused, match=rf"--master '{master}' is none of Spark's: local"):
        require_master(master)
