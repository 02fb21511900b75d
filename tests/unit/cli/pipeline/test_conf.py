"""Settings of Spark and of the client are told apart by their names."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ottla.cli.pipeline.run import app, read_conf
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


def test_a_job_that_takes_no_settings_of_the_client_says_so() -> None:
    done = CliRunner().invoke(app, ["elections", "--conf", "kafka.client.id=me"])

    assert isinstance(done.exception, UsageRefused)
    assert str(done.exception) == "--conf kafka.client.id: the job elections takes settings of Spark alone"
