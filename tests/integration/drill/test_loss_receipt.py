"""What an unclean election cost is written down: what may be lost at once, what was lost when it is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from ottla.launch.cluster import Cluster
from support.processes.commands import Ran, run_here
from support.processes.deaths import die
from support.running.waiting import wait_until
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.slow, pytest.mark.java]

GOVERNS, OLD, NEW = 0, 1, 2
BOTH_HAVE, ONE_HAS = 30, 20


class Lossy:
    """Three brokers; broker 0 governs, the partition lives on the other two."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.zk = KazooClient(hosts=cluster.zookeeper.connect)
        self.zk.start(timeout=20)
        wait_until(self.governs, "broker 0 is controller", 30, every=0.2)

    def governs(self) -> bool:
        if self.zk.exists("/controller") and self.read("/controller")["brokerid"] != GOVERNS:
            self.zk.delete("/controller")
            return False
        return bool(self.zk.exists("/controller"))

    def read(self, path: str) -> Any:
        return json.loads(self.zk.get(path)[0])

    def state(self, topic: str) -> dict[str, Any]:
        found: dict[str, Any] = self.read(f"/brokers/topics/{topic}/partitions/0/state")
        return found

    def do(self, command: str, *args: str) -> Ran:
        ran = run_here(command, "--bootstrap-server", self.cluster.bootstrap_servers, *args)
        assert ran.exit_code == 0, f"{command} {args}: {ran.stderr}{ran.stdout}"
        return ran

    def explained(self, topic: str) -> dict[str, Any]:
        story: dict[str, Any] = json.loads(self.do("explain", f"{topic}-0", "--json").stdout)
        return story

    def produce(self, topic: str, count: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap_servers, "acks": "all", "log_level": 0}
        )
        errors: list[Any] = []
        for number in range(count):
            producer.produce(topic, str(number), partition=0, on_delivery=lambda e, _: e and errors.append(e))
        assert producer.flush(60) == 0
        assert errors == []

    def kill(self, number: int) -> None:
        die(self.cluster, number)


@pytest.fixture(scope="module")
def lossy(chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lossy]:
    settings = {"auto.leader.rebalance.enable": "false"}
    data_dir = tmp_path_factory.mktemp("lossy")
    with Cluster(3, data_dir=data_dir, settings=settings, zookeeper=chroots.make().connect) as cluster:
        lossy = Lossy(cluster)
        try:
            yield lossy
        finally:
            lossy.zk.stop()
            lossy.zk.close()


def by_tool(lossy: Lossy, topic: str) -> None:
    wait_until(lambda: lossy.state(topic)["leader"] == -1, "nobody leads", 30)
    lossy.cluster.start_broker(NEW)
    assert lossy.state(topic)["leader"] == -1, "a clean election finds nobody"
    lossy.do("leader-election", "--election-type", "unclean", "--topic", topic, "--partition", "0")


def by_setting(lossy: Lossy, topic: str) -> None:
    lossy.do(
        "configs", "--alter", "--entity-type", "topics", "--entity-name", topic,
        "--add-config", "unclean.leader.election.enable=true",
    )  # fmt: skip
    lossy.cluster.start_broker(NEW)


@pytest.mark.parametrize("elect", [by_tool, by_setting])
def test_a_receipt_is_written_and_completed(lossy: Lossy, elect: Callable[[Lossy, str], None]):
    topic = elect.__name__.replace("_", "-")
    lossy.do("topics", "--create", "--topic", topic, "--replica-assignment", f"{OLD}:{NEW}")
    lossy.produce(topic, BOTH_HAVE)
    lossy.kill(NEW)
    wait_until(lambda: lossy.state(topic)["isr"] == [OLD], "the old leader is alone in sync", 30)
    lossy.produce(topic, ONE_HAS)
    lossy.kill(OLD)

    elect(lossy, topic)
    wait_until(lambda: lossy.state(topic)["leader"] == NEW, "the lagging replica leads", 30)
    found = wait_until(lambda: lossy.explained(topic)["losses"], "there is a receipt", 30, every=0.3)
    epoch = lossy.state(topic)["leader_epoch"]
    assert [(loss["leader_epoch"], loss["start"], loss["until"]) for loss in found] == [
        (epoch, BOTH_HAVE, None)
    ]
    wait_until(
        lambda: (
            {"loss receipt", "unclean start"} <= {row["kind"] for row in lossy.explained(topic)["history"]}
        ),
        "the controller and the new leader both said their part",
        30,
        every=0.3,
    )
    receipt = next(row for row in lossy.explained(topic)["history"] if row["kind"] == "loss receipt")
    assert (receipt["old_isr"], receipt["new_leader"], receipt["old_end_offset"]) == ([OLD], NEW, None)
    assert "from offset 30 on may be lost" in lossy.do("explain", f"{topic}-0").stdout

    lossy.cluster.start_broker(OLD)
    wait_until(lambda: sorted(lossy.state(topic)["isr"]) == [OLD, NEW], "the old leader follows", 30)
    wait_until(lambda: lossy.explained(topic)["losses"][0]["until"], "it is complete", 30, every=0.3)

    (loss,) = lossy.explained(topic)["losses"]
    assert (loss["start"], loss["until"], loss["cut_by"]) == (BOTH_HAVE, BOTH_HAVE + ONE_HAS, OLD)
    words = lossy.do("explain", f"{topic}-0").stdout
    assert f"COMPLETE: broker {OLD} came back and cut offsets 30 to 49" in words
