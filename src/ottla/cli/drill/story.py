"""The drill's steps: what is done, what must follow, and the znodes that show it."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from ottla.client.admin.cluster import elect_leaders
from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.launch.cluster import Cluster
from ottla.launch.refusal import LaunchRefused
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.partition_state import LeaderAndIsr
from ottla.model.timestamps import EARLIEST, LATEST
from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.znodes import paths
from ottla.znodes.codec import decode_controller, decode_controller_epoch, decode_partition_state

TOPIC = "drill"
REPLICAS = {0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}
STEP_LIMIT_S = 40.0
ACKNOWLEDGE_LIMIT_MS = 10_000
REFUSE_LIMIT_MS = 1_000
POLL_MS = 200
ALL = -1
"""For acks: every replica in sync."""


class DrillFailed(LaunchRefused):
    """The cluster did not do what it should."""


class Drill:
    """One play of the story, on a cluster of its own that is gone afterwards."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        settings = {"zookeeper.session.timeout.ms": "3000", "auto.leader.rebalance.enable": "false"}
        self._cluster = Cluster(brokers=3, settings=settings)
        self._zk: BlockingZooKeeper
        self._client: Client

    def play(self, *, with_loss: bool) -> None:
        self._say("Starting ZooKeeper and brokers 0, 1 and 2 ...")
        with ExitStack() as running:
            running.enter_context(self._cluster)
            self._zk = running.enter_context(BlockingZooKeeper(self._cluster.zookeeper.connect))
            self._client = running.enter_context(Client(self._cluster.bootstrap_servers))
            self._begin()
            self._kill_the_controller()
            self._bring_it_back()
            self._balance()
            if with_loss:
                self._lose_with_acks_1()
                self._lose_nothing_with_acks_all()
        self._say("\nThe drill is over: the cluster did what it should.")

    # -- the story -----------------------------------------------------------------------------

    def _begin(self) -> None:
        while self._controller() != 0:
            self._zk.delete(paths.CONTROLLER)
            self._await("somebody is controller", lambda: self._controller() is not None)
        result = self._client.run(
            create_topics,
            [a_topic(TOPIC, assignments=REPLICAS, configs={"min.insync.replicas": "2"})],
        )[0]
        if result.error_code != ErrorCode.NONE:
            raise DrillFailed(f"the topic could not be created: {ErrorCode(result.error_code).name}")
        self._await_isr(3)
        self._say("\n1. Three brokers, broker 0 is controller; a topic with 3 partitions, each on all three.")
        self._show_znode(paths.CONTROLLER)
        self._show_znode(paths.CONTROLLER_EPOCH)
        self._show_znode(paths.topic(TOPIC))
        self._show_states()

    def _kill_the_controller(self) -> None:
        sent = self._produce("before", 30)
        epoch = self._epoch()
        self._say(
            "\n2. 30 records are acknowledged with acks=all. Now broker 0, the controller, is killed (-9)."
        )
        started = time.monotonic()
        self._cluster.brokers[0].kill()
        self._await("another broker is controller", lambda: self._controller() not in (None, 0))
        self._await(
            "no partition is led by broker 0", lambda: all(s.leader in (1, 2) for s in self._states())
        )
        took_s = time.monotonic() - started
        self._say(f"   {took_s:.1f} s later (a dead process is noticed at once, a silent one after 3 s):")
        self._show_znode(paths.CONTROLLER)
        self._show_znode(paths.CONTROLLER_EPOCH)
        self._show_states()
        self._check(self._epoch() == epoch + 1, f"the controller's epoch rose by one, to {epoch + 1}")
        self._check(all(0 not in s.isr for s in self._states()), "broker 0 is out of every ISR")
        self._check(self._state(0).leader == 1, "partition 0 went to the next replica in sync, broker 1")
        missing = sorted(set(sent) - set(self._read()))
        self._check(not missing, "all 30 records can be read")

    def _bring_it_back(self) -> None:
        self._say("\n3. Broker 0 is started again.")
        self._cluster.start_broker(0)
        self._await_isr(3)
        self._show_states()
        leaders = Counter(int(state.leader) for state in self._states())
        self._check(leaders[0] == 0, "it follows and is in sync, but leads nothing: leadership is skewed")

    def _balance(self) -> None:
        self._say("\n4. Preferred replica election: each partition back to the first of its replicas.")
        self._client.run(elect_leaders)
        self._await("every partition is led by its first replica", self._is_balanced)
        self._show_states()
        self._check(self._is_balanced(), "every broker leads one partition again")

    def _lose_with_acks_1(self) -> None:
        self._say(
            "\n5. What acks=1 may lose. Broker 0 leads partition 0. Brokers 1 and 2 freeze, and before anyone"
        )
        self._say(
            "   notices, a record is sent with acks=1. Then all three die, and brokers 1 and 2 come back."
        )
        is_acknowledged = self._send_and_die(b"acks=1", acks=1)
        self._check(is_acknowledged, "the record was acknowledged")
        self._check("acks=1" not in self._read(), "and it is gone: broker 1 never had it")
        self._heal()

    def _lose_nothing_with_acks_all(self) -> None:
        self._say("\n6. The same with acks=all, while brokers 1 and 2 are frozen.")
        self._await("broker 0 leads partition 0", lambda: self._state(0).leader == 0)
        for broker in self._cluster.brokers[1:]:
            broker.pause()
        is_acknowledged = self._is_taken(b"acks=all", acks=ALL)
        for broker in self._cluster.brokers[1:]:
            broker.resume()
        self._check(not is_acknowledged, "broker 0 alone does not acknowledge it: nobody is told a lie")
        self._await_isr(3)

    # -- doing ---------------------------------------------------------------------------------

    def _produce(self, prefix: str, count: int) -> list[str]:
        values = [f"{prefix}-{number}" for number in range(count)]
        producer = self._client.producer()
        deliveries = [
            producer.send(TOPIC, value.encode(), partition=number % 3) for number, value in enumerate(values)
        ]
        producer.flush()
        failed = [delivery.error for delivery in deliveries if delivery.error is not None]
        self._check(not failed, f"{count} records were acknowledged", quietly=True)
        return values

    def _read(self) -> list[str]:
        """Everything in the topic up to its present end, however long new leaders take to answer."""
        partitions = [TopicPartition(TOPIC, number) for number in REPLICAS]
        ends = self._client.run(list_offsets, dict.fromkeys(partitions, LATEST))
        consumer = self._client.consumer()
        consumer.assign(dict.fromkeys(partitions, EARLIEST))
        values: list[str] = []

        def is_read() -> bool:
            for records in consumer.poll(POLL_MS).values():
                values.extend((record.value or b"").decode() for record in records)
            return all((consumer.position(each) or 0) >= ends[each].offset for each in partitions)

        self._await("everything up to the end can be read", is_read)
        return values

    def _send_and_die(self, value: bytes, *, acks: int) -> bool:
        """Whether a record was acknowledged that only broker 0 had when it died."""
        self._await("broker 0 leads partition 0", lambda: self._state(0).leader == 0)
        self._produce("warm-up", 3)
        followers = self._cluster.brokers[1:]
        for broker in followers:
            broker.pause()
        is_acknowledged = self._is_taken(value, acks)
        for broker in self._cluster.brokers:
            broker.kill()
        for broker in followers:
            self._cluster.launch_broker(broker.broker_id)
        self._cluster.await_members(frozenset({1, 2}))
        self._await("another broker leads partition 0", lambda: self._state(0).leader in (1, 2))
        return is_acknowledged

    def _is_taken(self, value: bytes, acks: int) -> bool:
        limit_ms = REFUSE_LIMIT_MS if acks == ALL else ACKNOWLEDGE_LIMIT_MS
        producer = self._client.producer(
            acks=acks, enable_idempotence=False, retries=0, delivery_timeout_ms=limit_ms
        )
        try:
            return producer.wait(producer.send(TOPIC, value, partition=0)).error is None
        except ClientError:
            return False

    def _heal(self) -> None:
        self._cluster.start_broker(0)
        self._await_isr(3)
        self._client.run(elect_leaders)
        self._await("every partition is led by its first replica", self._is_balanced)

    # -- seeing --------------------------------------------------------------------------------

    def _controller(self) -> int | None:
        node = self._zk.get_or_none(paths.CONTROLLER)
        return None if node is None else int(decode_controller(node.data).broker)

    def _epoch(self) -> int:
        return decode_controller_epoch(self._zk.get(paths.CONTROLLER_EPOCH).data)

    def _state(self, partition: int) -> LeaderAndIsr:
        node = self._zk.get(paths.partition_state(TopicPartition(TOPIC, partition)))
        return decode_partition_state(node.data, node.stat.version)

    def _states(self) -> list[LeaderAndIsr]:
        return [self._state(partition) for partition in REPLICAS]

    def _is_balanced(self) -> bool:
        return all(self._state(partition).leader == replicas[0] for partition, replicas in REPLICAS.items())

    def _await_isr(self, size: int) -> None:
        self._await("every replica is in sync", lambda: all(len(s.isr) == size for s in self._states()))

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + STEP_LIMIT_S
        while not condition():
            if time.monotonic() > give_up:
                raise DrillFailed(f"after {STEP_LIMIT_S:.0f} s it still does not hold that {what}")
            time.sleep(0.05)

    def _check(self, holds: bool, what: str, *, quietly: bool = False) -> None:
        if not holds:
            raise DrillFailed(f"it does not hold that {what}")
        if not quietly:
            self._say(f"   ok: {what}")

    def _show_znode(self, path: str) -> None:
        data = self._zk.get(path).data or b""
        self._say(f"   {path}  {data.decode()}")

    def _show_states(self) -> None:
        for partition, replicas in REPLICAS.items():
            state = self._state(partition)
            isr = ",".join(map(str, state.isr))
            self._say(
                f"   partition {partition}: replicas {','.join(map(str, replicas))}  leader {state.leader}"
                f"  leader epoch {state.leader_epoch}  ISR {isr}"
            )
