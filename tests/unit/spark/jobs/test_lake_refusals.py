"""What a copy into a table refuses before Spark and the cluster are asked."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.spark.errors import SparkRefused
from ottla.spark.jobs import lake


def options(tmp_path: Path, **more: Any) -> lake.LakeOptions:
    return lake.LakeOptions(bootstrap_servers="localhost:1", topics="t", table=str(tmp_path / "t"), **more)


def test_a_format_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(
        SparkRefused, match="option format='hudi': there is no such format; choose from delta, iceberg"
    ):
        lake.check(options(tmp_path, format="hudi"))


@pytest.mark.parametrize(("format", "package"), lake.PACKAGES.items())
def test_a_package_that_is_absent(
    format: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else known(name))

    with pytest.raises(SparkRefused, match=rf"the package {package}, .*; pip install 'ottla\[spark,lake\]'"):
        lake.check(options(tmp_path, format=format))


def test_a_setting_that_the_client_does_not_know(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    with pytest.raises(SparkRefused, match=r"option kafka\.linger\.ms: .*it knows"):
        lake.check(options(tmp_path, kafka={"kafka.linger.ms": "5"}))
