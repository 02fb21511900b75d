"""A controller's duties, each cut in two: begun under one controller, to be finished by the next.

Where it can be held, it is: a broker that must hear of it is frozen, so that the duty cannot be done before
the office has moved.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import NoNodeError

from ottla.client.admin.topics import describe_topics
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from support.clusters.mixed import Load, MixedCluster
from support.running.waiting import wait_until

FIRST, SECOND, OTHER = 1, 2, 3
PARTITIONS = 20
AT_ONCE = 0.005


@dataclass
class Stage:
    """Where a duty is played: who began, who shall finish, and what must not get lost meanwhile."""

    cluster: MixedCluster
    topic: str
    first: int
    """The controller that begins."""
    takers: frozenset[int]
    """Those who may govern next; broker 3 must be none of them where a duty is held."""
    load: Load | None = None
    leaving: list[threading.Thread] = field(default_factory=list)

    @property
    def witness(self) -> int:
        """The broker that neither governs first nor is frozen: it may take over."""
        return SECOND if self.first == FIRST else FIRST

    @property
    def is_handed_over(self) -> bool:
        return self.cluster.controller in self.takers

    def states(self) -> list[dict[str, Any]]:
        return self.cluster.states(self.topic)

    def node(self) -> Any:
        return self.cluster.read(f"/brokers/topics/{self.topic}")

    def write_topic(self, partitions: dict[int, list[int]], topic_id: str | None = None) -> bytes:
        fresh = base64.urlsafe_b64encode(self.topic.encode().ljust(16, b"x")[:16]).decode().rstrip("=")
        node = {
            "version": 3,
            "topic_id": topic_id or fresh,
            "partitions": {str(index): held for index, held in partitions.items()},
            "adding_replicas": {},
            "removing_replicas": {},
        }
        return json.dumps(node).encode()

    def create(self, *replicas: list[int], **config: str) -> None:
        self.cluster.create(self.topic, *replicas, **config)

    def under_load(self) -> None:
        self.load = Load(self.cluster, self.topic).__enter__()
        wait_until(lambda: len(self.load.acked) > 50, "records are acknowledged", 30)  # type: ignore[union-attr]

    def clear(self) -> None:
        """Nothing of it runs on, however it ended."""
        for broker in self.cluster.brokers.values():
            if broker.is_running:
                broker.resume()
        for leaver in self.leaving:
            leaver.join()
        if self.load is not None:
            self.load.__exit__()

    def brokers_agree(self) -> bool:
        """Every broker that runs answers with the leaders and the ISRs that stand in ZooKeeper."""
        wanted = [(state["leader"], sorted(state["isr"])) for state in self.states()]
        for number, broker in self.cluster.brokers.items():
            if not self.cluster.zk.exists(f"/brokers/ids/{number}"):
                continue
            try:
                with Client(broker.address) as client:
                    rows = client.run(describe_topics, [self.topic], timeout_ms=3_000).topics[0].partitions
            except ClientError:
                return False
            known = sorted((row.partition_index, row.leader_id, sorted(row.isr_nodes)) for row in rows)
            if [(leader, isr) for _, leader, isr in known] != wanted:
                return False
        return bool(wanted)


@dataclass(frozen=True)
class Duty:
    """One row of the table."""

    name: str
    prepare: Callable[[Stage], None]
    begin: Callable[[Stage], None]
    has_begun: Callable[[Stage], bool]
    is_done: Callable[[Stage], bool]
    is_held: bool = True
    """Whether broker 3 is frozen from the beginning until the office has moved."""
    leaves: bool = False
    """Whether broker 3 leaves: then it shall not govern."""


def spread(count: int = PARTITIONS) -> list[list[int]]:
    return [[1 + i % 3, 1 + (i + 1) % 3, 1 + (i + 2) % 3] for i in range(count)]


def is_whole(stage: Stage, size: int = 3) -> bool:
    """Every partition has a leader and a full ISR, and everybody knows it."""
    states = stage.states()
    is_full = all(state["leader"] >= 0 and len(state["isr"]) == size for state in states)
    return bool(states) and is_full and stage.brokers_agree()


# ---- create, grow, delete, configure


def nothing(_: Stage) -> None:
    """No stage is needed."""


def begin_create(stage: Stage) -> None:
    zk = stage.cluster.zk
    zk.create(f"/config/topics/{stage.topic}", b'{"version":1,"config":{}}')
    zk.create(f"/brokers/topics/{stage.topic}", stage.write_topic(dict(enumerate(spread()))))


def has_states(stage: Stage) -> bool:
    return bool(stage.cluster.zk.exists(f"/brokers/topics/{stage.topic}/partitions/0/state"))


def is_created(stage: Stage) -> bool:
    logs = len(stage.cluster.directories(stage.topic))
    return len(stage.states()) == PARTITIONS and logs == 3 * PARTITIONS and is_whole(stage)


def prepare_loaded(stage: Stage) -> None:
    stage.create(*spread(3))
    stage.under_load()


def begin_grow(stage: Stage) -> None:
    grown = stage.write_topic(dict(enumerate(spread())), stage.node()["topic_id"])
    stage.cluster.zk.set(f"/brokers/topics/{stage.topic}", grown)


def has_grown(stage: Stage) -> bool:
    return bool(stage.cluster.zk.exists(f"/brokers/topics/{stage.topic}/partitions/3/state"))


def prepare_many(stage: Stage) -> None:
    stage.create(*spread())


def begin_delete(stage: Stage) -> None:
    stage.cluster.zk.create(f"/admin/delete_topics/{stage.topic}")


def is_deleting(stage: Stage) -> bool:
    with suppress(ClientError), Client(stage.cluster.brokers[stage.first].address) as client:
        return bool(client.run(describe_topics, [stage.topic], timeout_ms=3_000).topics[0].error_code)
    return False


def is_gone(stage: Stage) -> bool:
    nodes = ("/brokers/topics", "/config/topics", "/admin/delete_topics")
    left = any(stage.cluster.zk.exists(f"{node}/{stage.topic}") for node in nodes)
    return not left and not stage.cluster.directories(stage.topic)


def begin_configure(stage: Stage) -> None:
    zk = stage.cluster.zk
    zk.set(f"/config/topics/{stage.topic}", b'{"version":1,"config":{"retention.ms":"7654321"}}')
    change = json.dumps({"version": 2, "entity_path": f"topics/{stage.topic}"}).encode()
    zk.create("/config/changes/config_change_", change, sequence=True)


def at_once(_: Stage) -> bool:
    """It is written: that is its beginning."""
    return True


def is_configured(stage: Stage) -> bool:
    """Each broker describes the setting, asked by itself."""
    from ottla.client.admin.configs import ResourceType, describe_configs

    for broker in stage.cluster.brokers.values():
        with Client(broker.address) as client:
            (found,) = client.run(describe_configs, [(ResourceType.TOPIC, stage.topic)])
        if {row.name: row.value for row in found.configs}.get("retention.ms") != "7654321":
            return False
    return True


# ---- reassign, elect


def prepare_move(stage: Stage) -> None:
    stage.create([FIRST, SECOND], [SECOND, FIRST])
    stage.under_load()


def begin_move(stage: Stage) -> None:
    stage.cluster.reassign_by_znode(stage.topic, 0, [OTHER, SECOND, FIRST])


def is_moving(stage: Stage) -> bool:
    return bool(stage.node()["adding_replicas"])


def is_moved(stage: Stage) -> bool:
    node = stage.node()
    is_settled = not node["adding_replicas"] and node["partitions"]["0"] == [OTHER, SECOND, FIRST]
    old_node = stage.cluster.zk.exists("/admin/reassign_partitions")
    return is_settled and not old_node and len(stage.states()[0]["isr"]) == 3 and stage.brokers_agree()


def prepare_astray(stage: Stage) -> None:
    """Everything is led by the second replica: the order was changed, and the leaders stayed."""
    stage.create(*[[FIRST, OTHER, SECOND], [SECOND, OTHER, FIRST]] * 3)
    wanted = [[OTHER, FIRST, SECOND], [OTHER, SECOND, FIRST]] * 3
    rows = [{"topic": stage.topic, "partition": i, "replicas": held} for i, held in enumerate(wanted)]
    node = json.dumps({"version": 1, "partitions": rows}).encode()
    stage.cluster.zk.create("/admin/reassign_partitions", node)
    for index, held in enumerate(wanted):
        stage.cluster.wait_moved(stage.topic, index, held)
    wait_until(lambda: not stage.cluster.zk.exists("/admin/reassign_partitions"), "the order is changed", 30)
    assert OTHER not in stage.cluster.leaders(stage.topic)
    stage.under_load()


def begin_prefer(stage: Stage) -> None:
    rows = [{"topic": stage.topic, "partition": index} for index in range(6)]
    node = json.dumps({"version": 1, "partitions": rows}).encode()
    stage.cluster.zk.create("/admin/preferred_replica_election", node)


def is_preferred(stage: Stage) -> bool:
    leaders = {state["leader"] for state in stage.states()}
    waits = stage.cluster.zk.exists("/admin/preferred_replica_election")
    return leaders == {OTHER} and not waits and stage.brokers_agree()


def prepare_offline(stage: Stage) -> None:
    """Two replicas, the lagging one alive; the other is dead and was alone in sync."""
    laggard = stage.witness
    stage.create([OTHER, laggard])
    stage.cluster.kill(laggard)
    wait_until(lambda: stage.states()[0]["isr"] == [OTHER], "only broker 3 is in sync", 30)
    stage.cluster.kill(OTHER)
    wait_until(lambda: stage.states()[0]["leader"] == -1, "nobody leads", 30)
    stage.cluster.start_again(laggard)


def begin_unclean(stage: Stage) -> None:
    zk = stage.cluster.zk
    zk.set(
        f"/config/topics/{stage.topic}", b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'
    )
    change = json.dumps({"version": 2, "entity_path": f"topics/{stage.topic}"}).encode()
    zk.create("/config/changes/config_change_", change, sequence=True)


def is_led_uncleanly(stage: Stage) -> bool:
    if stage.states()[0]["leader"] != stage.witness or not stage.brokers_agree():
        return False
    if not stage.cluster.zk.exists(f"/brokers/ids/{OTHER}"):
        stage.cluster.start_again(OTHER)
    return is_whole(stage, 2)


# ---- leave and return


def prepare_led_by_the_leaver(stage: Stage) -> None:
    stage.create(*[[OTHER, FIRST, SECOND], [FIRST, OTHER, SECOND], [OTHER, SECOND, FIRST]] * 5)
    stage.under_load()


def begin_leaving(stage: Stage) -> None:
    leaver = threading.Thread(target=stage.cluster.brokers[OTHER].shut_down, name="leaver")
    leaver.start()
    stage.leaving.append(leaver)


def has_lost_a_leader(stage: Stage) -> bool:
    return any(state["leader"] != OTHER for state in stage.states()[::3])


def has_left_and_returned(stage: Stage) -> bool:
    if stage.leaving:
        stage.leaving.pop().join()
        assert OTHER not in stage.cluster.leaders(stage.topic), "it left everything that it led"
        wait_until(lambda: not stage.cluster.zk.exists(f"/brokers/ids/{OTHER}"), "broker 3 left", 30)
        stage.cluster.start_again(OTHER)
    return is_whole(stage)


def prepare_dead(stage: Stage) -> None:
    prepare_led_by_the_leaver(stage)
    stage.cluster.kill(OTHER)
    wait_until(lambda: OTHER not in stage.cluster.leaders(stage.topic), "the others lead", 30)


def begin_return(stage: Stage) -> None:
    stage.cluster.brokers[OTHER].launch()


def is_registered(stage: Stage) -> bool:
    return bool(stage.cluster.zk.exists(f"/brokers/ids/{OTHER}"))


DUTIES = {
    duty.name: duty
    for duty in (
        Duty("create", nothing, begin_create, has_states, is_created),
        Duty("grow", prepare_loaded, begin_grow, has_grown, is_created),
        Duty("delete", prepare_many, begin_delete, is_deleting, is_gone),
        Duty("configure", prepare_loaded, begin_configure, at_once, is_configured),
        Duty("reassign", prepare_move, begin_move, is_moving, is_moved),
        Duty("preferred election", prepare_astray, begin_prefer, at_once, is_preferred),
        Duty("unclean election", prepare_offline, begin_unclean, at_once, is_led_uncleanly, is_held=False),
        Duty(
            "controlled shutdown",
            prepare_led_by_the_leaver,
            begin_leaving,
            has_lost_a_leader,
            has_left_and_returned,
            is_held=False,
            leaves=True,
        ),
        Duty("broker restart", prepare_dead, begin_return, is_registered, is_whole, is_held=False),
    )
}


def hand_over(stage: Stage, duty: Duty, *, by_kill: bool) -> None:
    """Begin under the first controller, move the office to the other kind, and see the duty done."""
    try:
        play(stage, duty, by_kill=by_kill)
        if stage.load is not None:
            stage.load.check()
    finally:
        stage.clear()


def play(stage: Stage, duty: Duty, *, by_kill: bool) -> None:
    """The same, without a look at the records."""
    cluster = stage.cluster
    if duty.leaves:
        stage.takers -= {OTHER}  # Once it is gone the first may well be elected again.
    cluster.elect_controller(stage.first)
    duty.prepare(stage)
    if duty.is_held:
        cluster.brokers[OTHER].pause()
    duty.begin(stage)
    wait_until(lambda: duty.has_begun(stage), f"{duty.name} has begun", 60, every=AT_ONCE)
    move_office(stage, by_kill=by_kill, is_held=duty.is_held)
    if by_kill:
        cluster.start_again(stage.first)
    wait_until(
        lambda: duty.is_done(stage),
        lambda: f"{duty.name} is finished: controller {cluster.controller}, {stage.states()}",
        60,
        every=0.2,
    )
    assert stage.is_handed_over, "the first controller came back in between"


def move_office(stage: Stage, *, by_kill: bool, is_held: bool) -> None:
    """Who shall not govern is frozen, or killed, until another is elected; no session runs out meanwhile."""
    cluster, first = stage.cluster, stage.first
    registered = {int(name) for name in cluster.zk.get_children("/brokers/ids")}
    frozen = [n for n in registered - stage.takers if cluster.brokers[n].is_running]
    if by_kill:
        cluster.brokers[first].kill()
        frozen.remove(first)
    for number in frozen:
        cluster.brokers[number].pause()
    with suppress(NoNodeError):
        cluster.zk.delete("/controller")
    if by_kill:
        with suppress(NoNodeError):
            cluster.zk.delete(f"/brokers/ids/{first}")
    wait_until(lambda: stage.is_handed_over, "another governs", 30, every=AT_ONCE)
    for number in {*frozen, OTHER} if is_held else frozen:
        cluster.brokers[number].resume()
