"""ZooKeeper's jars: out of pyspark, or fetched once and known by their hashes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ottla.launch.refusal import LaunchRefused
from ottla.launch.zookeeper import jars
from ottla.launch.zookeeper.jars import FETCHED, Jar, jars_here, zookeeper_jars, zookeeper_version

SERVER, JUTE = b"the server", b"its records"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two jars in a directory that stands for Maven Central, and no pyspark."""
    mirror = tmp_path / "mirror"
    pinned = tuple(
        Jar("org/apache/zookeeper", name, "3.9.5", hashlib.sha256(content).hexdigest())
        for name, content in (("zookeeper", SERVER), ("zookeeper-jute", JUTE))
    )
    for jar, content in zip(pinned, (SERVER, JUTE), strict=True):
        (mirror / jar.path).parent.mkdir(parents=True)
        (mirror / jar.path).write_bytes(content)
    monkeypatch.setattr(jars, "FETCHED", pinned)
    monkeypatch.setattr(jars.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("OTTLA_MAVEN_MIRROR", mirror.as_uri())
    monkeypatch.setenv("OTTLA_CACHE", str(tmp_path / "cache"))
    return mirror / "org/apache/zookeeper"


def test_they_come_from_the_installed_pyspark_and_are_few() -> None:
    found = zookeeper_jars()

    assert zookeeper_version(found).startswith("3.9.")
    assert all(jar.is_file() for jar in found)
    assert len(found) < 30


def test_those_that_would_be_fetched_are_those_of_pyspark() -> None:
    here = {jar.name: jar for jar in jars_here()}

    for jar in FETCHED:
        assert hashlib.sha256(here[jar.file_name].read_bytes()).hexdigest() == jar.sha256, jar.file_name


def test_without_pyspark_they_are_fetched_and_kept(maven: Path, tmp_path: Path) -> None:
    assert jars_here() == []

    found = zookeeper_jars()

    assert [jar.read_bytes() for jar in found] == [SERVER, JUTE]
    assert found[0].parent == tmp_path / "cache" / "zookeeper-3.9.5"
    (maven / "zookeeper/3.9.5/zookeeper-3.9.5.jar").unlink()
    assert zookeeper_jars() == jars_here() == found, "and not fetched again"


def test_what_was_interrupted_goes_on_where_it_stopped(maven: Path) -> None:
    jute = maven / "zookeeper-jute/3.9.5/zookeeper-jute-3.9.5.jar"
    jute.unlink()
    with pytest.raises(LaunchRefused, match=r"zookeeper-jute-3\.9\.5\.jar.*check the network"):
        zookeeper_jars()
    assert jars_here() == []
    (maven / "zookeeper/3.9.5/zookeeper-3.9.5.jar").unlink()
    jute.write_bytes(JUTE)

    assert [jar.read_bytes() for jar in zookeeper_jars()] == [SERVER, JUTE]


def test_a_file_with_another_hash_is_refused_and_not_kept(maven: Path, tmp_path: Path) -> None:
    (maven / "zookeeper/3.9.5/zookeeper-3.9.5.jar").write_bytes(b"something else")

    with pytest.raises(LaunchRefused, match="is not that file"):
        zookeeper_jars()
    assert list((tmp_path / "cache").rglob("*.jar")) == []


def test_a_cache_that_cannot_be_written_is_named(maven: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(LaunchRefused, match="name another directory in OTTLA_CACHE"):
        zookeeper_jars()
