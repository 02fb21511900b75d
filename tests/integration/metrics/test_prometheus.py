"""Debian's Prometheus reads a running cluster and its console: every expression of ours finds something."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.launch.cluster import Cluster
from support.client.console_process import running_console
from support.processes.deaths import die
from support.processes.ports import first_of_free_ports, free_port
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroots

OPERATING = Path(__file__).resolve().parents[3] / "docs" / "operating"
RULES, DASHBOARD = OPERATING / "alerts.yml", OPERATING / "grafana.json"
COMPARISON = re.compile(r" (?:[<>]=?|[!=]=) ")
WITHOUT_TLS = {"ottla_tls_certificate_end_seconds - time()"}
SECONDS_MAX = 60


def executable(name: str) -> str:
    """Of Debian's package; where it is not installed, the test is left out by name."""
    return shutil.which(name) or pytest.skip("no Prometheus; on Debian: apt-get install prometheus")


class Prometheus:
    """What a running server says."""

    def __init__(self, base: str) -> None:
        self._base = base

    def get(self, path: str, **words: str) -> Any:
        """The data of an answer; None while the server does not listen."""
        address = f"{self._base}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(address, timeout=SECONDS_MAX) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            if refused.code == 503:
                return None  # It still starts.
            raise AssertionError(f"{path} {words}: {refused.read().decode()}") from refused
        except urllib.error.URLError:
            return None

    def finds(self, expression: str) -> list[Any]:
        """The series of an expression, at this moment."""
        found = self.get("query", query=expression)
        return [] if found is None else list(found["result"])

    def alerts(self) -> set[str]:
        """Names of the rules that hold, for long enough or not yet."""
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"]}


@contextmanager
def running(directory: Path, targets: list[str], console: str) -> Iterator[Prometheus]:
    """A server that reads these brokers and the console, each second."""
    base, _, secret = console.partition("/?token=")
    (directory / "token").write_text(secret)
    jobs = [
        {"job_name": "kafka", "static_configs": [{"targets": targets}]},
        {
            "job_name": "console",
            "static_configs": [{"targets": [base.removeprefix("http://")]}],
            "authorization": {"credentials_file": str(directory / "token")},
        },
    ]
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": times, "rule_files": [str(RULES)], "scrape_configs": jobs}
    (directory / "prometheus.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    words = [
        executable("prometheus"),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with subprocess.Popen(words) as server:
        try:
            yield Prometheus(f"http://{address}")
        finally:
            server.terminate()


def expressions_of_the_dashboard() -> list[str]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [
        target["expr"].replace("$job", "kafka") for panel in panels for target in panel.get("targets", ())
    ]


def read_some(cluster: Cluster) -> None:
    """A group with committed offsets."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("watched", 6, 3)])["watched"].result(SECONDS_MAX)
    producer = Producer({**servers, "acks": "all"})
    producer.produce("watched", b"v", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    consumer = Consumer({**servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("watched", 0, 1)], asynchronous=False)
    consumer.close()


def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run([executable("promtool"), "check", "rules", RULES], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full("a Prometheus beside a cluster of its own, and a death")
def test_every_expression_finds_its_series_and_a_death_raises_the_alarm(
    chroots: Chroots, tmp_path: Path
) -> None:
    executable("prometheus")
    port = first_of_free_ports(3)
    targets = [f"127.0.0.1:{port + broker}" for broker in range(3)]
    settings = {"min.insync.replicas": "3"}
    with Cluster(3, metrics_port=port, settings=settings, zookeeper=chroots.make().connect) as cluster:
        read_some(cluster)
        with (
            running_console(cluster.bootstrap_servers) as console,
            running(tmp_path, targets, console) as prometheus,
        ):
            for expression in expressions_of_the_dashboard():
                wait_until(
                    lambda expression=expression: prometheus.finds(expression), expression, SECONDS_MAX
                )
            groups = wait_until(
                lambda: (prometheus.get("rules") or {}).get("groups"), "the rules are loaded", SECONDS_MAX
            )
            watched = {COMPARISON.split(rule["query"])[0] for group in groups for rule in group["rules"]}
            for expression in watched - WITHOUT_TLS:
                wait_until(
                    lambda expression=expression: prometheus.finds(expression), expression, SECONDS_MAX
                )
            wait_until(lambda: not prometheus.alerts(), "all is well", SECONDS_MAX)

            die(cluster, 2)

            expected = {"KafkaBrokerDown", "KafkaUnderReplicated", "KafkaUnderMinIsr"}
            wait_until(lambda: expected <= prometheus.alerts(), f"{expected} are raised", SECONDS_MAX)
            rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
            assert {rule["health"] for rule in rules} == {"ok"}
