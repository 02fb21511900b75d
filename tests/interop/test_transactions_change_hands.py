"""Transactions coordinated by one kind of broker go on at the other, in whatever state they were left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from ottla.wire.apis.describe_transactions import TransactionState
from support.clusters.mixed import MixedCluster, mixed_cluster
from support.processes.commands import run_here
from support.running.waiting import wait_until
from support.transactions.conversation import Producer, TransactionTalk

pytestmark = [pytest.mark.slow, pytest.mark.apache, pytest.mark.full("deaths that start brokers again")]

OTTLA, APACHE, ABSENT = 1, 2, 99
TOPIC = "__transaction_state"
UNKNOWN_TOPIC_OR_PARTITION, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, PRODUCER_FENCED = 3, 53, 90
SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 2,
    "transaction.two.phase.commit.enable": True,
}


@pytest.fixture(scope="module")
def cluster(jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    kinds = {OTTLA: "ottla", APACHE: "apache"}
    with mixed_cluster(tmp_path_factory.mktemp("transactions"), kinds, **SETTINGS) as running:
        running.create(TOPIC, [OTTLA, APACHE], **{"cleanup.policy": "compact"})
        yield running


@pytest.fixture(autouse=True)
def _revived(cluster: MixedCluster) -> None:
    cluster.revive()
    cluster.wait_for_isr(TOPIC, 2)


def coordinator(cluster: MixedCluster) -> int:
    state = cluster.state(TOPIC)
    return -1 if state is None else int(state["leader"])


def becomes_coordinator(cluster: MixedCluster, number: int) -> None:
    """The preferred leader is Ottla: for Apache it dies for a moment."""
    if number == OTTLA:

        def is_elected() -> bool:
            if coordinator(cluster) != OTTLA:
                with suppress(AssertionError, KafkaException):
                    cluster.prefer((TOPIC, 0))
            return coordinator(cluster) == OTTLA

        wait_until(is_elected, "Ottla coordinates", every=0.5)
    elif coordinator(cluster) != number:
        cluster.kill(OTTLA)
        wait_until(lambda: coordinator(cluster) == number, "Apache coordinates", 60)
        cluster.start_again(OTTLA)
        cluster.wait_for_isr(TOPIC, 2)


def make_stuck(cluster: MixedCluster, topic: str, leader: int) -> None:
    """A topic that takes no marker until it asks for fewer replicas; only znodes can make it."""
    config = {"version": 1, "config": {"min.insync.replicas": "2"}}
    partitions = {"version": 1, "partitions": {"0": [leader, ABSENT]}}
    cluster.zk.create(f"/config/topics/{topic}", json.dumps(config).encode())
    cluster.zk.create(f"/brokers/topics/{topic}", json.dumps(partitions).encode())
    wait_until(lambda: cluster.leaders(topic) == [leader], "the topic has its leader", 60)


def unstick(topic: str, address: str) -> None:
    """Ask the survivor: librdkafka's admin client may wait for a dead controller until it gives up."""
    entity = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--alter", *entity, "--add-config", "min.insync.replicas=1")
    ran = run_here("configs", "--bootstrap-server", address, *change)
    assert ran.exit_code == 0, ran.stderr


def written(at_leader: TransactionTalk, topic: str, producer: Producer) -> None:
    """The leader may hear of a new topic later than the broker that told us of its leader."""

    def code() -> int:
        rows = at_leader.produce(topic, 0, 0, producer).responses[0].partition_responses
        assert rows[0].error_code in (0, UNKNOWN_TOPIC_OR_PARTITION), rows
        return int(rows[0].error_code)

    wait_until(lambda: code() == 0, "the leader takes the batch", 60)


class Story:
    """One transactional id, asked at whichever broker coordinates."""

    def __init__(self, cluster: MixedCluster, name: str) -> None:
        self._cluster = cluster
        self.talk = TransactionTalk(cluster.brokers[coordinator(cluster)].address, name)

    def ask_the_next(self) -> None:
        """Another broker coordinates."""
        self.talk.close()
        address = self._cluster.brokers[coordinator(self._cluster)].address
        self.talk = TransactionTalk(address, self.talk.group, me=self.talk.me)

    def initialised(self) -> None:
        wait_until(lambda: self.talk.init().error_code == 0, "the producer has its epoch", 60)

    def added(self, *topics: str) -> None:
        wait_until(lambda: _code(self.talk.add(dict.fromkeys(topics, (0,)))) == 0, "partitions are added", 60)

    def ended(self, *, commit: bool) -> None:
        wait_until(lambda: self.talk.end(commit=commit).error_code == 0, "the outcome is stored", 60)

    def shown(self) -> TransactionState:
        row: TransactionState = self.talk.describe().transaction_states[0]
        return row

    def reaches(self, state: str) -> None:
        wait_until(lambda: self.shown().transaction_state == state, f"{self.talk.group} is {state}", 60)


def _code(answer: object) -> int:
    rows = answer.results_by_topic_v3_and_below  # type: ignore[attr-defined]
    return max(each.partition_error_code for row in rows for each in row.results_by_partition)


def read_committed(cluster: MixedCluster, topic: str) -> int:
    """How many records a reader of committed ones finds."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = 0
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found += 1
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("first", "second"), [(OTTLA, APACHE), (APACHE, OTTLA)], ids=["to-apache", "to-ottla"]
)
def test_whoever_takes_over_finishes_what_was_begun(cluster: MixedCluster, first: int, second: int) -> None:
    becomes_coordinator(cluster, first)
    topic, stuck = f"orders-{first}", f"stuck-{first}"
    cluster.create(topic, [second, first])
    make_stuck(cluster, stuck, second)
    wait_until(lambda: cluster.leaders(topic) == [second], "the survivor leads", 60)
    stories = {state: Story(cluster, f"{state}-{first}") for state in ("idle", "open", "commit", "abort")}
    at_leader = TransactionTalk(cluster.brokers[second].address, "")
    with ExitStack() as stack:
        stack.callback(at_leader.close)
        for story in stories.values():
            stack.callback(lambda one=story: one.talk.close())
        play(cluster, stories, at_leader, first, second)
    wait_until(lambda: read_committed(cluster, topic) == 2, "what was committed is read", 60)


def play(
    cluster: MixedCluster, stories: dict[str, Story], at_leader: TransactionTalk, first: int, second: int
) -> None:
    topic, stuck = f"orders-{first}", f"stuck-{first}"
    for state, story in stories.items():
        story.initialised()
        if state != "idle":
            story.added(topic, stuck) if state != "open" else story.added(topic)
            at_leader.group = story.talk.group
            written(at_leader, topic, story.talk.me)
        if state in ("commit", "abort"):
            story.ended(commit=state == "commit")
    before = {state: story.shown().transaction_state for state, story in stories.items()}
    assert list(before.values()) == ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort"]

    cluster.kill(first)
    wait_until(lambda: coordinator(cluster) == second, "the other kind coordinates", 60)
    for state, story in stories.items():
        story.ask_the_next()
        story.reaches(before[state])
        row = story.shown()
        assert (row.producer_id, row.producer_epoch) == (story.talk.me.producer_id, story.talk.me.epoch)
    unstick(stuck, cluster.brokers[second].address)
    stories["commit"].reaches("CompleteCommit")
    stories["abort"].reaches("CompleteAbort")
    stories["open"].ended(commit=True)
    stories["open"].reaches("CompleteCommit")
    assert stories["commit"].talk.end(commit=True).error_code == 0
    assert stories["commit"].talk.end(commit=False).error_code == 48
    again = stories["idle"].talk.init(stories["idle"].talk.me)
    assert (again.error_code, again.producer_epoch) == (0, 1)


def test_what_apache_would_not_keep_is_not_promised_and_it_passes_over_who_resumed(
    cluster: MixedCluster,
) -> None:
    """It reads the record, and knows only the id and epoch under which the transaction was written."""
    becomes_coordinator(cluster, OTTLA)
    topic = "prepared"
    cluster.create(topic, [APACHE])
    story = Story(cluster, "prepared")
    story.initialised()
    story.added(topic)
    at_leader = TransactionTalk(cluster.brokers[APACHE].address, story.talk.group)
    writer = story.talk.me
    with ExitStack() as stack:
        stack.callback(lambda: story.talk.close())
        stack.callback(at_leader.close)
        written(at_leader, topic, writer)

        refused = story.talk.init(version=6, two_phase=True, keeps=True, takes=False)
        resumed = story.talk.init(version=6, keeps=True, takes=False)
        cluster.kill(OTTLA)
        wait_until(lambda: coordinator(cluster) == APACHE, "Apache coordinates", 60)
        story.ask_the_next()
        story.reaches("Ongoing")
        row = story.shown()
        by_the_owner = story.talk.end(writer.newer()).error_code
        story.ended(commit=True)
        story.reaches("CompleteCommit")

    assert refused.error_code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (resumed.error_code, resumed.producer_epoch, resumed.ongoing_txn_producer_epoch) == (0, 1, 0)
    assert (row.producer_epoch, by_the_owner) == (writer.epoch, PRODUCER_FENCED)
    wait_until(lambda: read_committed(cluster, topic) == 1, "what was committed is read", 60)
