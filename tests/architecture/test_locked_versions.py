"""A fresh machine gets the versions that were tested."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from architecture.sources import ROOT


def locked(name: str) -> dict[str, Version]:
    """Package and version of every line of a lock file."""
    lines = (ROOT / name).read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def wanted() -> list[Requirement]:
    """Everything that the project file asks for, with all extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    named = [Requirement(text) for group in groups for text in group]
    return [requirement for requirement in named if requirement.name != "ottla"]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_each_dependency_is_locked_to_a_version_that_fits(requirement: Requirement) -> None:
    versions = locked("requirements.lock")

    assert versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_build_tools_are_locked_as_the_project_file_wants_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    versions = locked("requirements-build.lock")

    for text in project["build-system"]["requires"]:
        requirement = Requirement(text)
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_no_package_is_locked_twice() -> None:
    assert set(locked("requirements.lock")) & set(locked("requirements-build.lock")) == set()


def test_all_brings_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = re.search(r"\[(.*)\]", extras["all"][0])

    assert brought
    assert set(brought[1].split(",")) == set(extras) - {"all"}
