"""The group protocol of Kafka 4 is not offered: who insists on it is told so, in words, and does not hang."""

from __future__ import annotations

import subprocess

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.cluster import Cluster
from support.members.programs import KINDS

TOPIC = "newer"


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
    return TOPIC


def test_a_client_that_insists_on_the_new_protocol_is_told_at_once(cluster: Cluster, topic: str) -> None:
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "topic": topic,
        "group.id": "modern",
        "group.protocol": "consumer",
    }
    words = [f"{name}={value}" for name, value in settings.items()]

    done = subprocess.run(
        [*KINDS["java-4"].command(), *words], capture_output=True, text=True, timeout=60, check=False
    )

    said = done.stdout.strip().splitlines()
    assert said, done.stderr
    assert said[-1].startswith("failed "), said
    assert "UnsupportedVersionException" in said[-1], said
    assert "group.protocol=classic" in said[-1], said
