"""An Ottla broker with two log directories under Apache's controller: one fails, replicas move."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters.mixed import QUIET, MixedCluster, read_all
from support.processes.apache_tools import run_main
from support.processes.commands import run_here
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

OTTLA, APACHE = 1, 2
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture
def cluster(tmp_path: Path, jars: object) -> Iterator[MixedCluster]:
    running = MixedCluster(tmp_path, {APACHE: "apache", OTTLA: "ottla"}, offsets_topic_replication_factor=1)
    running.brokers[OTTLA].change_settings(log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def send(cluster: MixedCluster, topic: str, partition: int, values: list[str]) -> None:
    from confluent_kafka import Producer

    failed: list[str] = []
    one_by_one = {"batch.num.messages": 1, "linger.ms": 0}
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **one_by_one, **QUIET}
    )
    for value in values:
        producer.produce(
            topic,
            value,
            partition=partition,
            on_delivery=lambda error, _: failed.append(str(error)) if error is not None else None,
        )
    assert producer.flush(60) == 0
    assert failed == []


def home_of(cluster: MixedCluster, partition: str) -> Path:
    [found] = [
        path for path in cluster.directory.glob(f"*/{partition}") if path.parent.name in ("one", "two")
    ]
    return found.parent


def described(stdout: str) -> dict[str, str | None]:
    """The error of each log directory, as a tool prints it."""
    found = json.loads(next(line for line in stdout.splitlines() if line.startswith("{")))
    return {row["logDir"]: row["error"] for broker in found["brokers"] for row in broker["logDirs"]}


def test_a_failing_directory_takes_only_its_own_partitions_along(cluster: MixedCluster) -> None:
    cluster.elect_controller(APACHE)
    cluster.create("spread", *([OTTLA, APACHE] for _ in range(4)), segment_bytes="20000")
    cluster.wait_for_isr("spread", 2)
    for partition in range(4):
        send(cluster, "spread", partition, [f"before-{partition}"])
    broken = home_of(cluster, "spread-0")
    in_broken = {index for index in range(4) if home_of(cluster, f"spread-{index}") == broken}
    assert 0 < len(in_broken) < 4

    broken.rename(cluster.directory / "gone")  # at once: the broker still writes its checkpoints there
    for index in range(4):
        send(cluster, "spread", index, [f"after-{index}-{number}" * 300 for number in range(30)])

    def leaders_are_right() -> bool:
        return cluster.leaders("spread") == [APACHE if index in in_broken else OTTLA for index in range(4)]

    wait_until(leaders_are_right, "only the broken directory's partitions are led elsewhere", 30)
    assert len(read_all(cluster, "spread")) == 4 * 31
    assert "log directory failed" in cluster.brokers[OTTLA].log_text()
    asked = ("--bootstrap-server", cluster.brokers[OTTLA].address, "--describe", "--broker-list", str(OTTLA))
    theirs = described(run_main("org.apache.kafka.tools.LogDirsCommand", *asked).stdout)
    assert described(run_here("log-dirs", *asked).stdout) == theirs
    assert set(theirs.values()) == {None, "org.apache.kafka.common.errors.KafkaStorageException"}

    assert cluster.brokers[OTTLA].shut_down() == 0
    cluster.start_again(OTTLA)
    cluster.wait_for_isr("spread", 2)
    assert len(read_all(cluster, "spread")) == 4 * 31


@pytest.mark.full("a mixed cluster of its own")
def test_apaches_tools_move_replicas_between_ottlas_directories(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    cluster.elect_controller(APACHE)
    cluster.create("moved", [OTTLA, APACHE], [APACHE, OTTLA], segment_bytes="20000")
    cluster.wait_for_isr("moved", 2)
    for partition in range(2):
        send(cluster, "moved", partition, [f"{partition}-{number}" * 300 for number in range(40)])
    other = {
        partition: str(tmp_path / ("two" if home_of(cluster, f"moved-{partition}").name == "one" else "one"))
        for partition in range(2)
    }
    rows = [
        {"topic": "moved", "partition": 0, "replicas": [OTTLA, APACHE], "log_dirs": [other[0], "any"]},
        {"topic": "moved", "partition": 1, "replicas": [APACHE, OTTLA], "log_dirs": ["any", other[1]]},
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    at_ottla = ("--bootstrap-server", cluster.brokers[OTTLA].address)
    tool = (TOOL, *at_ottla)

    started = run_main(*tool, "--reassignment-json-file", str(plan), "--execute")
    assert started.stdout.count("Successfully started moving log directory") == 2, started.stdout
    wait_until(
        lambda: all(Path(other[each], f"moved-{each}").is_dir() for each in range(2)),
        "both replicas lie in the other directory",
        30,
    )
    verified = run_main(*tool, "--reassignment-json-file", str(plan), "--verify")
    assert verified.stdout.count("completed successfully") == 2, verified.stdout

    log_dirs = ("org.apache.kafka.tools.LogDirsCommand", *at_ottla)
    described = run_main(*log_dirs, "--describe", "--topic-list", "moved")
    found = json.loads(next(line for line in described.stdout.splitlines() if line.startswith("{")))
    places = {
        replica["partition"]: (directory["logDir"], replica["isFuture"], replica["offsetLag"])
        for broker in found["brokers"]
        if broker["broker"] == OTTLA
        for directory in broker["logDirs"]
        for replica in directory["partitions"]
    }
    assert places == {f"moved-{each}": (other[each], False, 0) for each in range(2)}
    for partition in range(2):
        send(cluster, "moved", partition, ["after the move"])
    assert len(read_all(cluster, "moved")) == 2 * 41
    cluster.wait_for_isr("moved", 2)


@pytest.mark.full("a mixed cluster of its own")
def test_ottlas_tool_moves_replicas_between_directories_in_apaches_words(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    cluster.create("carried", [OTTLA, APACHE])
    cluster.wait_for_isr("carried", 2)
    send(cluster, "carried", 0, [f"{number}" * 300 for number in range(40)])
    other = tmp_path / ("two" if home_of(cluster, "carried-0").name == "one" else "one")
    row = {"topic": "carried", "partition": 0, "replicas": [OTTLA, APACHE], "log_dirs": [str(other), "any"]}
    plan = tmp_path / "carry.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    servers = ("--bootstrap-server", cluster.brokers[OTTLA].address)
    words = (*servers, "--reassignment-json-file", str(plan))
    throttle = ("--throttle", "10000000", "--replica-alter-log-dirs-throttle", "20000000")

    unmoved = run_here("reassign-partitions", *words, "--verify", "--preserve-throttles")
    unmoved_at_apaches = run_main(TOOL, *words, "--verify", "--preserve-throttles")
    started = run_here("reassign-partitions", *words, "--execute", *throttle, "--wait")
    moved_at_apaches = run_main(TOOL, *words, "--verify")
    cancelled = run_here("reassign-partitions", *words, "--cancel")
    cancelled_at_apaches = run_main(TOOL, *words, "--cancel")

    assert unmoved.stdout == unmoved_at_apaches.stdout
    assert "is not being moved from log dir" in unmoved.stdout
    assert started.exit_code == 0, started.stderr
    assert "The replica-alter-dir throttle limit was set to 20000000 B/s" in started.lines
    assert (
        f"Successfully started moving log directory to {other} for replica carried-0 with broker 1 "
        in started.stdout
    )
    assert started.stdout.endswith(moved_at_apaches.stdout), "the wait ends with what --verify says"
    assert Path(other, "carried-0").is_dir()
    # Apache's tool ends this one line without a newline.
    assert cancelled.stdout == cancelled_at_apaches.stdout.replace("active.Clearing", "active.\nClearing")
    assert len(read_all(cluster, "carried")) == 40
