"""An Ottla controller over Apache brokers: every duty, under load, and the office changing hands."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from support.bench.duties import DUTIES, Stage, hand_over
from support.clusters.mixed import Load, MixedCluster, mixed_cluster
from support.processes.apache_tools import run_main
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

OTTLA, APACHE, OTHER = 1, 2, 3
KINDS = {OTTLA: "ottla", APACHE: "apache", OTHER: "apache"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("mixed"), KINDS) as running:
        yield running


@pytest.fixture(autouse=True)
def _mended(cluster: MixedCluster) -> Iterator[None]:
    """One test's failure is not the next one's: who was killed or frozen is back, and no topic is left."""
    yield
    cluster.mend()


@pytest.fixture(params=["ottla", "apache"])
def governed(cluster: MixedCluster, request: pytest.FixtureRequest) -> MixedCluster:
    """The same duty under each controller: what one leaves the other must read."""
    cluster.elect_controller(OTTLA if request.param == "ottla" else APACHE)
    return cluster


def test_topics_are_created_grown_and_deleted(governed: MixedCluster):
    governed.create("grown", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    assert governed.leaders("grown") == [1, 2, 3]

    governed.grow("grown", 5)
    assert len(governed.states("grown")) == 5
    wait_until(lambda: len(governed.directories("grown")) == 15, "every replica has its log", 30)

    governed.delete("grown")
    governed.wait_gone("grown")


def test_settings_reach_every_broker(governed: MixedCluster):
    governed.create("tuned", [1, 2], [2, 3])
    resource = ConfigResource(ResourceType.TOPIC, "tuned")
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "123456", incremental_operation=AlterConfigOpType.SET)
    )

    governed.admin.incremental_alter_configs([resource])[resource].result(30)

    described = governed.admin.describe_configs([ConfigResource(ResourceType.TOPIC, "tuned")])
    assert [f.result(30)["retention.ms"].value for f in described.values()] == ["123456"]
    governed.delete("tuned")
    governed.wait_gone("tuned")


@pytest.mark.full("starts Apache's brokers again")
def test_a_killed_broker_loses_its_leaderships_and_comes_back_in_sync(governed: MixedCluster):
    victim = OTHER
    governed.create("survivor", [3, 1, 2], [3, 2, 1], [1, 2, 3])
    with Load(governed, "survivor") as load:
        governed.kill(victim)
        wait_until(lambda: victim not in governed.leaders("survivor"), "the leaders have moved", 30)
        wait_until(
            lambda: all(victim not in state["isr"] for state in governed.states("survivor")),
            "it left every ISR",
            30,
        )
        governed.start_again(victim)
        governed.wait_for_isr("survivor", 3)
        governed.prefer(("survivor", 0), ("survivor", 1))
        assert governed.leaders("survivor") == [3, 3, 1]
        load.check()
    governed.delete("survivor")
    governed.wait_gone("survivor")


def test_a_broker_that_leaves_in_order_loses_nothing(governed: MixedCluster):
    leaver = OTHER
    governed.create("orderly", [3, 1, 2], [1, 2, 3])
    with Load(governed, "orderly") as load:
        assert governed.brokers[leaver].shut_down() in (0, 143)
        assert leaver not in governed.leaders("orderly")
        governed.start_again(leaver)
        governed.wait_for_isr("orderly", 3)
        load.check()
    governed.delete("orderly")
    governed.wait_gone("orderly")


def test_partitions_move_with_their_records(governed: MixedCluster):
    governed.create("moved", [1, 2], [2, 1])
    with Load(governed, "moved") as load:
        governed.reassign_by_znode("moved", 0, [3, 2])
        governed.wait_moved("moved", 0, [3, 2])
        assert governed.state("moved", 0)["leader"] in (3, 2)  # type: ignore[index]
        wait_until(lambda: not governed.zk.exists("/admin/reassign_partitions"), "the old znode is gone")
        governed.reassign_by_znode("moved", 0, [1, 2, 3])
        governed.wait_moved("moved", 0, [1, 2, 3])
        load.check()
    governed.delete("moved")
    governed.wait_gone("moved")


@pytest.mark.full("starts Apache's brokers again")
def test_unclean_election_by_tool(governed: MixedCluster):
    governed.create("unclean", [3, 2])
    governed.kill(2)
    wait_until(lambda: governed.state("unclean")["isr"] == [3], "broker 2 left the ISR", 30)  # type: ignore[index]
    governed.kill(3)
    wait_until(lambda: governed.leaders("unclean") == [-1], "the partition is offline", 30)
    governed.start_again(2)
    assert governed.leaders("unclean") == [-1]

    governed.elect_uncleanly("unclean", 0)

    assert governed.leaders("unclean") == [2]
    governed.start_again(3)
    governed.wait_for_isr("unclean", 2)
    governed.delete("unclean")
    governed.wait_gone("unclean")


def test_apaches_own_tool_describes_what_ottla_decided(cluster: MixedCluster):
    cluster.elect_controller(OTTLA)
    cluster.create("described", [2, 1, 3])

    def described() -> str:
        """What the broker says that the tool happens to ask; it may hear of the topic a moment later."""
        words = ("--bootstrap-server", cluster.bootstrap, "--describe", "--topic", "described")
        run = run_main("org.apache.kafka.tools.TopicCommand", *words)
        return "" if "does not exist as expected" in run.stdout else run.stdout

    said = wait_until(described, "the brokers know the topic")

    assert "Leader: 2" in said
    assert "Replicas: 2,1,3" in said
    assert "Isr: 2,1,3" in said
    cluster.delete("described")


IN_SHORT = [("create", False), ("delete", False), ("reassign", False), ("preferred election", False)]
ALL = [
    pytest.param(duty, by_kill, marks=() if (duty, by_kill) in IN_SHORT else pytest.mark.long)
    for duty in DUTIES
    for by_kill in (False, True)
]


@pytest.mark.parametrize(("duty", "by_kill"), ALL)
def test_the_office_moves_to_the_other_kind_and_back_in_the_middle_of(
    cluster: MixedCluster, duty: str, by_kill: bool
):
    """Each duty is begun by one kind of controller and finished by the other, both ways round."""
    for first, takers in ((OTTLA, {APACHE, OTHER}), (APACHE, {OTTLA})):
        name = f"{duty.replace(' ', '-')}-{'k' if by_kill else 'd'}{first}"
        hand_over(Stage(cluster, name, first, frozenset(takers)), DUTIES[duty], by_kill=by_kill)


@pytest.mark.full("starts Apache's brokers again")
def test_a_broker_is_swapped_in_place_and_back_and_nothing_is_copied_again(cluster: MixedCluster):
    cluster.elect_controller(OTTLA)
    cluster.create("swapped", [OTHER, OTTLA, APACHE], [APACHE, OTHER, OTTLA])
    first_segment = cluster.brokers[OTHER].log_dir / "swapped-0" / f"{0:020}.log"
    with Load(cluster, "swapped") as load:
        wait_until(
            lambda: first_segment.exists() and first_segment.stat().st_size > 10_000, "records came", 30
        )
        before = first_segment.stat()
        for kind in ("ottla", "apache"):
            cluster.swap(OTHER, kind)
            cluster.wait_for_isr("swapped", 3)
            cluster.prefer(("swapped", 0))
            assert cluster.leaders("swapped") == [OTHER, APACHE]
        after = first_segment.stat()
        assert (after.st_ino, after.st_size > before.st_size) == (before.st_ino, True), "the file lives on"
        load.check()
    cluster.delete("swapped")
    cluster.wait_gone("swapped")
