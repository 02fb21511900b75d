"""Replication between Ottla and Apache under Apache's controller: equal bytes, nothing lost, right cuts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from support.clusters.mixed import QUIET, Load, MixedCluster, mixed_cluster, read_all
from support.clusters.watermarks import watermarks
from support.processes.apache import brokers_known_to
from support.running.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.apache]

OTTLA, APACHE, CONTROLLER = 1, 2, 3
KINDS = {OTTLA: "ottla", APACHE: "apache", CONTROLLER: "apache"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jars: object) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("mixed"), KINDS) as running:
        running.elect_controller(CONTROLLER)
        yield running


@pytest.fixture(autouse=True)
def _everyone_is_up(cluster: MixedCluster) -> None:
    """A test that failed half-way must not take the following ones along."""
    cluster.revive()
    cluster.elect_controller(CONTROLLER)


def send(
    cluster: MixedCluster, topic: str, values: list[str], partition: int = 0, **settings: object
) -> list[str]:
    """Produce to one partition; the values that were acknowledged."""
    acked: list[str] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 1, **QUIET, **settings})

    def delivered(error: object, message: object) -> None:
        if error is None:
            acked.append(message.value().decode())  # type: ignore[attr-defined]

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
    producer.flush(60)
    return acked


def write(producer: Producer, topic: str, values: list[str]) -> None:
    """Through a producer that is connected already; all must be acknowledged."""
    failed: list[object] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(60) == 0
    assert failed == [None] * len(values)


def segments(cluster: MixedCluster, number: int, topic: str, partition: int) -> bytes:
    """A replica's batches as they lie on its disk."""
    directory = Path(cluster.brokers[number].log_dir) / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def wait_for_equal_replicas(cluster: MixedCluster, topic: str, *replicas: int, partitions: int = 1) -> None:
    """Until every replica holds the same bytes, and some."""

    def are_equal() -> bool:
        for partition in range(partitions):
            held = {segments(cluster, number, topic, partition) for number in replicas}
            if len(held) != 1 or held == {b""}:
                return False
        return True

    wait_until(are_equal, f"all replicas of {topic} are byte-identical", 60, every=0.2)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_are_the_same_bytes_on_every_replica(cluster: MixedCluster, acks: str, codec: str) -> None:
    topic = f"same-{acks}-{codec}"
    cluster.create(topic, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    for partition in range(3):
        send(cluster, topic, ["the leader is ready"], partition, acks="all")
        values = [f"{partition}-{number}" * 5 for number in range(200)]
        acked = send(cluster, topic, values, partition, acks=acks, **{"compression.type": codec})
        assert acked == values

    wait_until(
        lambda: len(read_all(cluster, topic)) == 603, "all can be read, with acks=0 a little later", 60
    )
    wait_for_equal_replicas(cluster, topic, 1, 2, 3, partitions=3)


@pytest.mark.full("three brokers die, sleep and leave in turn")
def test_nothing_is_lost_while_each_broker_in_turn_dies_sleeps_and_leaves(cluster: MixedCluster) -> None:
    topic = "survivor"
    cluster.create(topic, [1, 2, 3], [2, 3, 1], [3, 1, 2], min_insync_replicas="2")
    cluster.wait_for_isr(topic, 3)
    with Load(cluster, topic) as load:
        for number in KINDS:
            cluster.kill(number)
            cluster.start_again(number)
            cluster.wait_for_isr(topic, 3)

            broker = cluster.brokers[number]
            broker.pause()
            wait_until(lambda n=number: not cluster.zk.exists(f"/brokers/ids/{n}"), "its session has ended")
            broker.resume()
            wait_until(lambda n=number: cluster.zk.exists(f"/brokers/ids/{n}"), "it is back")
            cluster.wait_for_isr(topic, 3)

            broker.shut_down()
            cluster.start_again(number)
            cluster.wait_for_isr(topic, 3)
        load.check()
    wait_for_equal_replicas(cluster, topic, 1, 2, 3, partitions=3)


@pytest.mark.parametrize(("deposed", "elected"), [(OTTLA, APACHE), (APACHE, OTTLA)], ids=["ottla", "apache"])
def test_a_deposed_leader_cuts_what_it_wrote_alone(cluster: MixedCluster, deposed: int, elected: int) -> None:
    """acks=1 records that never reached the follower vanish when the old leader returns as follower."""
    topic = f"diverged-{deposed}"
    cluster.elect_controller(CONTROLLER)
    cluster.create(topic, [deposed, elected])
    cluster.wait_for_isr(topic, 2)
    # Connected beforehand: what follows must be done before the sleeper's session ends.
    writer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "1", "linger.ms": 1, **QUIET})
    write(writer, topic, ["common"])
    wait_for_equal_replicas(cluster, topic, deposed, elected)

    cluster.brokers[elected].pause()
    # The first record still reaches the sleeper's socket, as the answer to the fetch it had parked.
    write(writer, topic, ["overtaken"])
    write(writer, topic, [f"alone-{number}" for number in range(20)])
    cluster.brokers[deposed].kill()
    cluster.brokers[elected].resume()
    cluster.kill(deposed)
    wait_until(
        lambda: cluster.leaders(topic) == [elected],
        lambda: f"the follower is elected: {cluster.states(topic)}",
        30,
    )
    kept = [f"kept-{number}" for number in range(10)]
    assert send(cluster, topic, kept, acks="all") == kept

    cluster.start_again(deposed)
    cluster.wait_for_isr(topic, 2)

    assert [value for value in read_all(cluster, topic) if value != "overtaken"] == ["common", *kept]
    wait_for_equal_replicas(cluster, topic, deposed, elected)


@pytest.mark.parametrize(("leader", "follower"), [(OTTLA, APACHE), (APACHE, OTTLA)], ids=["ottla", "apache"])
def test_a_follower_whose_next_record_was_deleted_begins_anew(
    cluster: MixedCluster, leader: int, follower: int
) -> None:
    topic = f"deleted-{leader}"
    cluster.create(topic, [leader, follower])
    cluster.wait_for_isr(topic, 2)
    send(cluster, topic, ["early"], acks="all")
    cluster.kill(follower)
    cluster.wait_for_isr(topic, 1)
    port = cluster.brokers[leader].port
    wait_until(lambda: follower not in brokers_known_to(port), "the leader knows of the death", 30)
    send(cluster, topic, [f"gone-{number}" for number in range(20)], acks="1")

    end = TopicPartition(topic, 0, 15)
    cluster.admin.delete_records([end])[end].result(30)
    cluster.start_again(follower)
    cluster.wait_for_isr(topic, 2)

    cluster.brokers[leader].shut_down()
    wait_until(lambda: cluster.leaders(topic) == [follower], "the follower leads", 30)
    assert read_from_the_start(cluster, topic) == [f"gone-{number}" for number in range(14, 20)]
    cluster.start_again(leader)
    cluster.wait_for_isr(topic, 2)


def read_from_the_start(cluster: MixedCluster, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", **QUIET})
    try:
        _, high = watermarks(consumer, topic)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values: list[str] = []
        while True:
            message = consumer.poll(20)
            assert message is not None, f"read {values}"
            values.append(message.value().decode())
            if message.offset() >= high - 1:
                return values
    finally:
        consumer.close()


@pytest.mark.parametrize("leader", [OTTLA, APACHE], ids=["ottla", "apache"])
def test_transactions_of_an_apache_coordinator(cluster: MixedCluster, leader: int) -> None:
    """Committed records are seen, aborted ones are not, with an Ottla leader and an Ottla follower."""
    if "__transaction_state" not in cluster.admin.list_topics(timeout=20).topics:
        cluster.create(
            "__transaction_state", *([APACHE, CONTROLLER] for _ in range(5)), cleanup_policy="compact"
        )
    topic = f"transactional-{leader}"
    follower = APACHE if leader == OTTLA else OTTLA
    cluster.create(topic, [leader, follower])
    cluster.wait_for_isr(topic, 2)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": f"payments-{leader}", **QUIET}
    )
    initialise(producer)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, f"value-{number}", partition=0)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)

    assert read_committed(cluster, topic) == ["value-0", "value-2", "value-4"]
    wait_for_equal_replicas(cluster, topic, leader, follower)
    cluster.brokers[leader].shut_down()
    wait_until(lambda: cluster.leaders(topic) == [follower], "the follower leads", 30)
    assert read_committed(cluster, topic) == ["value-0", "value-2", "value-4"]
    cluster.start_again(leader)
    cluster.wait_for_isr(topic, 2)


def initialise(producer: Producer) -> None:
    """The coordinator may still be loading."""

    def is_done() -> bool:
        try:
            producer.init_transactions(20)
        except KafkaException:
            return False
        return True

    wait_until(is_done, "the transactional producer has its id", 60)


def read_committed(cluster: MixedCluster, topic: str) -> list[str]:
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "group.id": "committed"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings, **QUIET})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values: list[str] = []
        while True:
            message = consumer.poll(20)
            assert message is not None, f"read {values}"
            if message.error() is not None:
                return values
            values.append(message.value().decode())
    finally:
        consumer.close()
