"""The plugin as somebody else's project uses it: a directory of its own, a run of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.running.documented import programs_of

THEIR_TESTS = """
from confluent_kafka import Consumer, Producer, TopicPartition


def test_a_record_survives_the_death_of_its_leader(ottla):
    topic = ottla.topic(partitions=1, configs={"min.insync.replicas": "2"})
    producer = Producer({"bootstrap.servers": ottla.bootstrap_servers, "acks": "all"})
    producer.produce(topic, b"kept")
    assert producer.flush(60) == 0
    leader = producer.list_topics(topic).topics[topic].partitions[0].leader
    ottla.kill(leader)
    where = {"bootstrap.servers": ottla.bootstrap_servers}
    # No group: its topic needs three brokers to be made on, and one of them is dead.
    consumer = Consumer({**where, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(60).value() == b"kept"
    consumer.close()


def test_every_test_finds_all_brokers_and_its_own_topics(ottla, ottla_cluster):
    assert all(broker.is_running for broker in ottla_cluster.cluster.brokers)
    first, second = ottla.topic(), ottla.topic()
    assert first != second
    assert first.startswith("test_every_test_finds_all_brokers")
    ottla.pause(1)
"""


def run_pytest(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def test_a_foreign_project_has_a_cluster_by_naming_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nottla_settings =\n    num.partitions=2\n")
    (tmp_path / "test_theirs.py").write_text(THEIR_TESTS)

    done = run_pytest(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_tests_on_the_page_pass(repository: Path, tmp_path: Path) -> None:
    shown = [text for text in programs_of(repository / "docs" / "testing.md") if "def test_" in text]
    assert len(shown) == 2
    for number, text in enumerate(shown):
        (tmp_path / f"test_shown_{number}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    done = run_pytest(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_every_worker_has_a_cluster_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nottla_brokers = 1\nottla_zookeeper = keeper\n")
    text = (
        "def test_it(ottla):\n    open(str(ottla.cluster.brokers[0].pid), 'w').close()\n    ottla.topic()\n"
    )
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(text)

    done = run_pytest(tmp_path, "-n", "2", "--dist", "loadfile")

    assert done.returncode == 0, done.stdout + done.stderr
    assert len([file for file in tmp_path.iterdir() if file.name.isdecimal()]) == 2


def test_a_setting_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nottla_settings =\n    nonsense\n")
    (tmp_path / "test_theirs.py").write_text("def test_it(ottla):\n    pass\n")

    done = run_pytest(tmp_path)

    assert done.returncode != 0
    assert "ottla_settings: 'nonsense' is not name=value" in done.stdout + done.stderr


WATCHING = """
import os
from pathlib import Path


def warm_processes():
    found = []
    for each in Path("/proc").iterdir():
        try:
            words = (each / "cmdline").read_bytes().split(b"\\0")
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if b"ottla.launch.forking.warm" in words and parent == os.getpid():
            found.append(each.name)
    return found


def pytest_collection_finish(session):
    Path("collected").write_text(" ".join(warm_processes()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="brokers are forked on Linux alone")
@pytest.mark.parametrize(
    ("words", "begun"), [(("--ottla-brokers", "1"), 1), (("-k", "nothing"), 1), (("--collect-only",), 0)]
)
def test_brokers_are_imported_while_tests_are_collected(
    tmp_path: Path, words: tuple[str, ...], begun: int
) -> None:
    """By one process, which forks them, and which does not stay where no test wants it in the end."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(WATCHING)
    (tmp_path / "test_theirs.py").write_text(
        "from conftest import warm_processes\n\n\ndef test_one(ottla):\n"
        "    assert warm_processes() == open('collected').read().split()\n\n\n"
        "def test_two(ottla):\n    pass\n"
    )

    done = run_pytest(tmp_path, *words)

    assert done.returncode == (5 if "-k" in words else 0), done.stdout + done.stderr
    warm = (tmp_path / "collected").read_text().split()
    assert len(warm) == begun
    assert not any(Path(f"/proc/{pid}").exists() for pid in warm)


def test_the_plugin_costs_nothing_until_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        "import sys\n\ndef test_it():\n    assert not [m for m in sys.modules if m.startswith('ottla.') and "
        "not m.startswith('ottla.testing')]\n"
    )

    assert run_pytest(tmp_path).returncode == 0
