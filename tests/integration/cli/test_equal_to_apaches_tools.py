"""Each tool beside Apache's own: the same lines, on an Ottla cluster and on one of Apache's own brokers."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla.launch.cluster import Cluster
from support.processes.apache import ToolRun, apache_cluster
from support.processes.apache_tools import TOOLS, run_apache
from support.processes.commands import Ran, ottla_command, run_command, run_here
from support.processes.java_process import dies_with_its_parent, java_command

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

SAME = "com.pared"
"""A topic that is only looked at."""


@dataclass(frozen=True)
class Both:
    """Two sets of tools at one cluster."""

    bootstrap: str
    kind: str

    def ours(self, command: str, *args: str, stdin: bytes = b"") -> Ran:
        words = (*command.split(), "--bootstrap-server", self.bootstrap, *args)
        return run_command(*words, stdin=stdin) if stdin else run_here(*words)

    def done(self, command: str, *args: str, stdin: bytes = b"") -> list[str]:
        ran = self.ours(command, *args, stdin=stdin)
        assert ran.exit_code == 0, f"{command} {args}: {ran.stderr}{ran.stdout}"
        return ran.lines

    def theirs(self, command: str, *args: str, stdin: str = "") -> ToolRun:
        action = ("cluster-id",) if command == "cluster-id" else ()
        where = ("--bootstrap-server", self.bootstrap)
        if command == "perf produce":
            where = ("--producer-props", f"bootstrap.servers={self.bootstrap}")
        return run_apache(command, *action, *args, *where, stdin=stdin)

    def lines(self, command: str, *args: str, stdin: str = "") -> list[str]:
        ran = self.theirs(command, *args, stdin=stdin)
        assert ran.exit_code == 0, f"{command} {args}: {ran.stderr}{ran.stdout}"
        return [line.rstrip() for line in ran.stdout.splitlines() if line.strip()]


@pytest.fixture(scope="module", params=["ottla", "apache"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A cluster with a topic, records and a group that has read some of them."""
    if request.param == "ottla":
        running: Cluster = request.getfixturevalue("cluster")
        yield prepared(Both(running.bootstrap_servers, "ottla"))
        return
    with apache_cluster(tmp_path_factory.mktemp("apache"), size=2, first_id=0) as foreign:
        yield prepared(Both(foreign.bootstrap, "apache"))


def prepared(both: Both) -> Both:
    config = ("--config", "retention.ms=7000000")
    both.done("topics", "--create", "--topic", SAME, "--replica-assignment", "0:1,1:0,0:1", *config)
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    both.done("console-producer", "--topic", SAME, *keyed, stdin=b"a:1\nb:2\nc:3\nd:4\ne:5\nf:6\n")
    reading = ("--from-beginning", "--max-messages", "6", "--group", "both")
    both.done("console-consumer", "--topic", SAME, *reading)
    return both


EARLY = ("--partition", "0", "--from-beginning", "--max-messages", "1")
"""All of that partition: one key of the six is hashed to it."""
LOOKS: list[tuple[str, tuple[str, ...]]] = [
    ("topics", ("--describe", "--topic", SAME)),
    ("topics", ("--list", "--exclude-internal", "--topic", "com.*")),
    ("topics", ("--describe", "--topics-with-overrides", "--topic", "com.*")),
    ("topics", ("--describe", "--at-min-isr-partitions", "--topic", SAME)),
    ("get-offsets", ("--topic", SAME)),
    ("get-offsets", ("--topic-partitions", f"{SAME}:1-,com.*:0", "--time", "-2")),
    ("get-offsets", ("--topic", SAME, "--time", "max-timestamp")),
    ("consumer-groups", ("--describe", "--group", "both")),
    ("consumer-groups", ("--list",)),
    ("consumer-groups", ("--list", "--state")),
    ("consumer-groups", ("--describe", "--group", "both", "--state")),
    ("consumer-groups", ("--describe", "--group", "both", "--members")),
    ("leader-election", ("--election-type", "PREFERRED", "--topic", SAME, "--partition", "1")),
    ("configs", ("--describe", "--entity-type", "topics", "--entity-name", SAME)),
    ("configs", ("--describe", "--topic", SAME, "--all")),
    ("configs", ("--describe", "--entity-type", "brokers", "--entity-default")),
    ("reassign-partitions", ("--list",)),
    ("cluster-id", ()),
    ("console-consumer", ("--topic", SAME, *EARLY)),
    (
        "console-consumer",
        (
            "--topic", SAME, *EARLY, "--property", "print.key=true", "--property", "print.offset=true",
            "--property", "print.partition=true", "--property", "print.timestamp=true",
            "--property", "print.headers=true", "--property", "key.separator=|",
        ),
    ),
    ("console-consumer", ("--topic", SAME, "--partition", "0", "--offset", "0", "--max-messages", "1")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "args"), LOOKS, ids=lambda part: " ".join(part) or "-")
def test_the_lines_are_those_of_apaches_tool(both: Both, command: str, args: tuple[str, ...]) -> None:
    ours = both.done(command, *args)
    theirs = both.lines(command, *args)

    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("both", ["ottla"], indirect=True)
def test_columns_of_groups_grow_as_in_apaches_tool(both: Both) -> None:
    long = ("--group", "a-name-wider-than-its-column", "--topic", SAME)
    both.done("consumer-groups", "--reset-offsets", *long, "--to-earliest", "--execute")

    for args in (("--list", "--state", "--type"), ("--describe", "--all-groups")):
        assert sorted(both.done("consumer-groups", *args)) == sorted(both.lines("consumer-groups", *args))


def test_api_versions_are_those_that_apaches_tool_reads(both: Both) -> None:
    ours = both.done("broker-api-versions")
    theirs = both.lines("broker-api-versions")

    spoken = sorted(line.rstrip(",") for line in ours if " to " in line)
    assert spoken == sorted(line.rstrip(",") for line in theirs if " to " in line)
    assert sorted(line for line in ours if "->" in line) == sorted(line for line in theirs if "->" in line)


def test_log_dirs_are_those_that_apaches_tool_reads(both: Both) -> None:
    args = ("--describe", "--topic-list", SAME)

    def sizes(lines: list[str]) -> object:
        rows = json.loads(lines[-1])
        for broker in rows["brokers"]:
            for directory in broker["logDirs"]:
                directory["partitions"].sort(key=lambda row: row["partition"])
        return lines[:-1], rows

    assert sizes(both.done("log-dirs", *args)) == sizes(both.lines("log-dirs", *args))


def test_a_refused_election_fails_in_both(both: Both) -> None:
    args = ("--election-type", "UNCLEAN", "--topic", "nowhere", "--partition", "0")
    ours, theirs = both.ours("leader-election", *args), both.theirs("leader-election", *args)

    prefix = "Error completing leader election (UNCLEAN) for partition: nowhere-0: "
    assert (ours.exit_code, theirs.exit_code) == (1, 1)
    assert ours.lines[0].startswith(prefix)
    assert theirs.stdout.startswith(prefix)


Say = Callable[..., list[str]]


def a_topics_life(say: Say, topic: str) -> list[list[str]]:
    return [
        say("topics", "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "2"),
        say("topics", "--create", "--topic", topic, "--if-not-exists", "--partitions", "1"),
        say("topics", "--alter", "--topic", topic, "--partitions", "3"),
        say("configs", "--alter", "--topic", topic, "--add-config", "retention.ms=9,cleanup.policy=compact"),
        say("configs", "--alter", "--entity-type", "topics", "--entity-name", topic,
            "--delete-config", "retention.ms"),
        say("configs", "--describe", "--topic", topic),
        say("topics", "--delete", "--topic", topic),
    ]  # fmt: skip


def records_life(say: Say, topic: str, directory: Path) -> list[list[str]]:
    before = directory / f"{topic}.json"
    row = {"topic": topic, "partition": 0, "offset": 2}
    before.write_text(json.dumps({"version": 1, "partitions": [row]}))
    headers = ("--property", "parse.headers=true", "--property", "parse.key=true")
    printed = ("--property", "print.key=true", "--property", "print.headers=true")
    reading = ("--from-beginning", "--max-messages", "3", "--group", f"group-of-{topic}")
    say("topics", "--create", "--topic", topic, "--replica-assignment", "0:1")
    say(
        "console-producer",
        "--topic",
        topic,
        *headers,
        stdin="h:1,i:2\tkey\tone\nh:3\tkey\ttwo\nh:4\tk\tthree\n",
    )
    return [
        say("console-consumer", "--topic", topic, *printed, *reading),
        say("delete-records", "--offset-json-file", str(before)),
        say("get-offsets", "--topic", topic, "--time", "earliest"),
    ]


def a_groups_life(say: Say, topic: str) -> list[list[str]]:
    group = f"group-of-{topic}"
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    return [
        say("consumer-groups", *reset, "--shift-by", "-1", "--dry-run"),
        say("consumer-groups", *reset, "--to-latest", "--execute"),
        say("consumer-groups", *reset, "--to-offset", "2", "--export", "--dry-run"),
        say("consumer-groups", "--describe", "--group", group),
        say("consumer-groups", "--delete", "--group", group),
        say("consumer-groups", *reset, "--to-earliest", "--execute"),
        say("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic),
    ]


def a_moves_life(say: Say, topic: str, directory: Path) -> list[list[str]]:
    plan = directory / f"{topic}-plan.json"
    row = {"topic": topic, "partition": 0, "replicas": [1, 0], "log_dirs": ["any", "any"]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    file = ("--reassignment-json-file", str(plan))
    one = ("--topic", topic, "--partition", "0")
    return [
        say("reassign-partitions", "--execute", *file),
        say("leader-election", "--election-type", "preferred", *one),
        say("leader-election", "--election-type", "preferred", *one),
        say("reassign-partitions", "--verify", *file),
        say("reassign-partitions", "--cancel", *file),
    ]


@pytest.mark.parametrize("both", ["ottla"], indirect=True)
def test_a_life_told_by_our_tools_is_the_one_told_by_apaches(both: Both, tmp_path: Path) -> None:
    """The same changes by each set of tools, on a topic of its own: the same words, but for its name.

    Where lines end is not compared: Kafka's tools forget the end of some.
    """

    def with_ours(command: str, *args: str, stdin: str = "") -> list[str]:
        return both.done(command, *args, stdin=stdin.encode())

    def told(say: Say, topic: str) -> list[list[str]]:
        life = [
            *a_topics_life(say, f"brief-{topic}"),
            *records_life(say, topic, tmp_path),
            *a_moves_life(say, topic, tmp_path),
            *a_groups_life(say, topic),
        ]
        texts = [
            "\n".join(lines).replace(topic, "TOPIC").replace(".Clearing", ". Clearing") for lines in life
        ]
        return [sorted(text.split()) for text in texts]

    assert told(with_ours, "ours1") == told(both.lines, "their")


def test_a_plan_of_ours_is_moved_by_apaches_tool(both: Both, tmp_path: Path) -> None:
    both.done("topics", "--create", "--topic", "moved", "--replica-assignment", "0:1,1:0")
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics": [{"topic": "moved"}], "version": 1}')
    generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "0,1")
    plan = tmp_path / "plan.json"
    file = ("--reassignment-json-file", str(plan))

    plan.write_text(both.done("reassign-partitions", *generate)[-1])
    moved = both.lines("reassign-partitions", "--execute", *file)
    both.done("reassign-partitions", "--verify", *file, "--wait")
    seen = both.lines("reassign-partitions", "--verify", *file)

    assert any(line.startswith("Successfully started partition reassignment") for line in moved)
    assert sum(line.endswith("is completed.") for line in seen) == 2
    assert sorted(both.done("reassign-partitions", "--verify", *file)) == sorted(seen)


def shape(line: str) -> str:
    """A line of measurements without its numbers."""
    return re.sub(r"\d+", "N", re.sub(r"\d+\.\d+", "N.N", line))


def test_measurements_are_told_in_the_same_words(both: Both) -> None:
    both.done("topics", "--create", "--topic", "measured", "--replica-assignment", "0:1")
    args = ("--topic", "measured", "--num-records", "300", "--record-size", "100", "--throughput", "-1")
    written, also_written = both.done("perf produce", *args), both.lines("perf produce", *args)
    reading = ("--topic", "measured", "--messages", "600")
    read, also_read = both.done("perf consume", *reading), both.lines("perf consume", *reading)

    assert [shape(line) for line in written] == [shape(line) for line in also_written]
    assert [shape(line) for line in read] == [shape(line) for line in also_read]
    assert written[0].startswith("300 records sent, ")
    columns = [line.split(", ") for line in (read[1], also_read[1])]
    assert [(row[2], row[4]) for row in columns] == [("0.0572", "600")] * 2


def test_replicas_are_verified_in_the_same_words(both: Both) -> None:
    flags = ("--topics-include", SAME, "--time", "-2", "--report-interval-ms", "200", "--max-wait-ms", "100")
    where = ("--broker-list", both.bootstrap)
    theirs = java_command(f"{TOOLS}.ReplicaVerificationTool", *where, *flags)

    shapes = []
    for command in (theirs, ottla_command("replica-verification", *where, *flags)):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=dies_with_its_parent,
        ) as process:
            assert process.stdout is not None
            shapes.append([shape(process.stdout.readline()) for _ in range(2)])
            process.kill()

    assert shapes[0] == shapes[1]
    assert shapes[0][1].startswith(
        "N-N-N N:N:N,N: max lag is N for partition com.pared-N at offset N among N"
    )


def test_explain_infers_what_an_apache_controller_decided(both: Both) -> None:
    told = json.loads("\n".join(both.done("explain", f"{SAME}-0", "--json")))
    words = "\n".join(both.done("explain", f"{SAME}-0"))

    assert told["leader"] == 0
    assert told["is_told"] == (both.kind == "ottla")
    assert ("decided by an Apache controller, inferred from znodes" in words) == (both.kind == "apache")
    assert both.done("describe")[0].startswith("cluster ")
