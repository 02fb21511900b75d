"""Settings of Spark and of the client are told apart by their names."""

from __future__ import annotations

import pytest

from ottla.cli.pipeline.run import read_conf
from ottla.cli.shared.refusal import UsageRefused


def test_each_setting_goes_where_its_name_says() -> None:
    given = ["spark.executor.memory=2g", "kafka.client.id=a=b"]

    assert read_conf(given) == ({"spark.executor.memory": "2g"}, {"kafka.client.id": "a=b"})


@pytest.mark.parametrize(
    "given", ["executor.memory=2g", "spark.executor.memory", "kafka.bootstrap.servers=x:1"]
)
def test_what_is_no_setting_is_refused_without_its_value(given: str) -> None:
    with pytest.raises(UsageRefused) as refused:
        read_conf([given])

    assert "2g" not in str(refused.value)
    assert given.partition("=")[0] in str(refused.value)
