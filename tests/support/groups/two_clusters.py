"""An Apache and an Ottla cluster of one broker each, on one ZooKeeper, with the same topics and settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.launch.embedded_zookeeper import EmbeddedZooKeeper
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from support.groups.conversation import OTHER_TOPIC, TOPIC
from support.processes.apache import ApacheBroker
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroots

TOPICS = {TOPIC: 3, OTHER_TOPIC: 2}
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 1,
    "group.min.session.timeout.ms": 500,
    "group.max.size": 3,
    "auto.create.topics.enable": False,
}


@dataclass(frozen=True, slots=True)
class TwoClusters:
    """Both have broker 0 and the topics above."""

    apache: ApacheBroker
    ottla: OttlaBroker

    @property
    def both(self) -> tuple[ApacheBroker, OttlaBroker]:
        return self.apache, self.ottla


@contextmanager
def two_clusters(directory: Path, **settings: object) -> Iterator[TwoClusters]:
    """Both running, their topics made and their coordinators loaded."""
    given: dict[str, Any] = {**SETTINGS, **settings}
    with EmbeddedZooKeeper(directory / "zookeeper") as zookeeper:
        chroots = Chroots(zookeeper)
        apache = ApacheBroker(0, chroots.make().connect, None, directory / "apache" / "data", **given)
        ottla = OttlaBroker(0, chroots.make().connect, None, directory / "ottla" / "data", **given)
        try:
            for broker in (apache, ottla):
                broker.launch()
            for broker in (apache, ottla):
                broker.wait_usable()
                _prepare(broker.address)
            yield TwoClusters(apache, ottla)
        finally:
            apache.stop()
            ottla.stop()


def _prepare(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
        made.result(30)

    def coordinates() -> bool:
        with WireClient(address) as client:
            if client.ask(FindCoordinatorRequest(key="g"), 3).error_code:
                return False
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
            return bool(client.ask(asked, 9).groups[0].error_code == 0)

    wait_until(coordinates, "the broker coordinates groups", 60)
