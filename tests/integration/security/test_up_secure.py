"""``ottla up --secure``: closed doors, and files that open them."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ottla.cli.local.up import _closed_doors
from ottla.config.properties import parse_properties
from ottla.launch.cluster import Cluster
from ottla.launch.kafka_probe import see_cluster
from ottla.launch.refusal import LaunchRefused
from ottla.launch.secure.doors import ClosedDoors
from support.processes.commands import run_here

pytestmark = [pytest.mark.slow]
WRITER = """
import runpy, sys
from kafka import KafkaProducer
producer = KafkaProducer(**runpy.run_path(sys.argv[1])["SETTINGS"])
producer.send("orders", b"one").get(timeout=60)
producer.close()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data_dir = tmp_path_factory.mktemp("secure")
    with Cluster(2, data_dir=data_dir, closed=_closed_doors(data_dir), sync=False) as cluster:
        yield cluster


def of(cluster: Cluster, name: str) -> Path:
    return cluster.data_dir / "secure" / name


def test_nobody_comes_in_without_tls_and_a_login(cluster: Cluster) -> None:
    broker = cluster.brokers[0]
    assert see_cluster("127.0.0.1", broker.port) is None
    settings = parse_properties(of(cluster, "librdkafka.properties").read_text())
    wrong = AdminClient({**settings, "sasl.password": "wrong", "log_level": 0})
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=3)
    assert cluster.controller in (0, 1)


def test_librdkafka_kafka_python_and_commands_come_in_with_their_files(cluster: Cluster) -> None:
    settings = parse_properties(of(cluster, "librdkafka.properties").read_text())
    assert set(AdminClient({**settings, "log_level": 0}).list_topics(timeout=60).brokers) == {0, 1}

    subprocess.run(
        [sys.executable, "-c", WRITER, str(of(cluster, "python_client.py"))], check=True, timeout=120
    )

    file = str(of(cluster, "client.properties"))
    read = run_here(
        "console-consumer", "--bootstrap-server", cluster.bootstrap_servers, "--consumer.config", file,
        "--topic", "orders", "--from-beginning", "--max-messages", "1",
    )  # fmt: skip
    assert read.lines[0] == "one", read
    listed = run_here(
        "users", "list", "--bootstrap-server", cluster.bootstrap_servers, "--command-config", file
    )
    assert {"admin", "broker"} <= {line.split()[0] for line in listed.lines[1:]}


def test_a_new_user_comes_in_and_may_do_nothing_until_a_rule_allows_it(cluster: Cluster) -> None:
    file = str(of(cluster, "client.properties"))
    to = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", file)
    added = run_here("users", "add", "bob", *to, "--password", "bob-secret")
    made = run_here("topics", *to, "--create", "--topic", "hidden")
    assert (added.exit_code, made.exit_code) == (0, 0), (added, made)
    settings = parse_properties(of(cluster, "librdkafka.properties").read_text())
    admin = AdminClient({**settings, "log_level": 0})
    bob = AdminClient({**settings, "sasl.username": "bob", "sasl.password": "bob-secret", "log_level": 0})

    assert "hidden" in admin.list_topics(timeout=60).topics
    assert bob.list_topics(timeout=60).topics == {}


def test_what_is_secret_is_for_its_owner_alone(cluster: Cluster) -> None:
    kept = [*of(cluster, ".").iterdir(), *cluster.data_dir.glob("broker-*/server.properties")]
    assert len(kept) >= 10
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}
    assert stat.S_IMODE(of(cluster, ".").stat().st_mode) == 0o700


def test_authority_and_passwords_stay_over_restarts(tmp_path: Path) -> None:
    users: list[tuple[str, str, str]] = []

    def prepared() -> dict[str, str]:
        doors = ClosedDoors(
            tmp_path, lambda connect, user, secret: users.append((connect, user, secret.text))
        )
        doors.prepare("zk:1", "127.0.0.1:1")
        return {file.name: file.read_text() for file in doors.directory.iterdir()}

    first, second = prepared(), prepared()

    changed = {name for name, text in second.items() if first[name] != text}
    assert changed == {"brokers.pem"}
    assert users[:2] == users[2:]
    assert {user for _, user, _ in users} == {"broker", "admin"}


def test_without_the_library_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(LaunchRefused, match=r"pip install 'ottla\[tls\]'"):
        ClosedDoors(tmp_path, lambda *_: None).prepare("zk:1", "127.0.0.1:1")


def test_what_does_not_log_in_yet_is_refused_beside_it(tmp_path: Path) -> None:
    ran = run_here("up", "--secure", "--demo", "--data-dir", str(tmp_path / "data"))

    assert ran.exit_code == 2
    assert "do not log in yet" in ran.stderr
