"""How to start a member of each kind: built once into the lab directory, from pinned versions.

Every program takes settings as ``name=value`` and says on its standard output, a line each:
``assigned 0,2`` (newly its own; ``-`` for none), ``revoked 0``, ``record partition offset value``,
``committed partition offset`` (acknowledged), ``uncommitted reason``, ``unpolled reason`` (it goes on),
``failed reason`` and ``left``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.members.building import go_program, jars_of, java_program, node_program
from support.processes.lab import kafka_jars

HERE = Path(__file__).resolve().parent
ALL_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of client, and what it can do."""

    name: str
    command: Callable[[], list[str]]
    strategies: tuple[str, ...]
    may_be_static: bool = True


def _java_member(jars: Callable[[], Path]) -> list[str]:
    return java_program(HERE / "java" / "GroupMember.java", newest_java_client(), jars())


def newest_java_client() -> Path:
    """Kafka's own client, of a release after Ottla's."""
    return jars_of(HERE / "java" / "pom.xml")


def kafka_streams(program: str = "WordCount", release: str = "streams") -> list[str]:
    """An application on Kafka Streams, of the release whose project this is; its source says what it does."""
    jars = jars_of(HERE / release / "pom.xml")
    return java_program(HERE / "streams" / f"{program}.java", jars, jars)


def _python(script: str) -> list[str]:
    return [sys.executable, str(HERE / script)]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("ottla", lambda: _python("with_ottla.py"), ALL_STRATEGIES),
        Kind("java-4", lambda: _java_member(newest_java_client), ALL_STRATEGIES),
        Kind("java-3.9", lambda: _java_member(kafka_jars), ALL_STRATEGIES),
        Kind(
            "kafkajs",
            lambda: node_program(HERE / "kafkajs", "member.js"),
            ("roundrobin",),
            may_be_static=False,
        ),
        Kind("franz-go", lambda: go_program(HERE / "franz_go", "member.go"), ALL_STRATEGIES),
        Kind(
            "librdkafka", lambda: _python("with_librdkafka.py"), ("range", "roundrobin", "cooperative-sticky")
        ),
        Kind("kafka-python", lambda: _python("with_kafka_python.py"), ALL_STRATEGIES),
        Kind(
            "aiokafka",
            lambda: _python("with_aiokafka.py"),
            ("range", "roundrobin", "sticky"),
        ),
    )
}
