"""The controller's requests: one after another, a slice at a time, with others served in between."""

import pytest

from ottla.broker.runtime.tasks import BREATH, SLICE_MS, Steps
from ottla.wire.apis.fetch import FetchRequest
from ottla.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ottla.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from ottla.wire.apis.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from support.bench.led_broker import CONTROLLER_EPOCH, ME, SECOND, TOPIC, TOPIC_ID, LedBroker, a_batch

BROKERS = (ME, SECOND)


def a_request(
    broker: LedBroker, count: int, *, cost_ms: int, done: list[int], fails: bool = False
) -> Steps[None]:
    """Each step takes so long, by the broker's clock."""
    for number in range(count):
        broker.clock.now_ms += cost_ms
        done.append(number)
        if fails:
            raise ValueError("this request fails")
        yield BREATH


def put(broker: LedBroker, steps: Steps[None]) -> None:
    """A request that the broker itself waits for."""
    broker.node.control_requests.put(steps, broker.node.runtime.own)


def finish(broker: LedBroker) -> None:
    """Let the loop go on until every request is carried out."""
    for _ in range(100):
        broker.node.on_tick()
        broker.settle()
    assert broker.node.control_requests.is_empty


def leader_and_isr(count: int, epoch: int = 1) -> LeaderAndIsrRequest:
    """Every other partition is led here."""
    states = [
        LeaderAndIsrPartitionState(
            partition_index=number,
            controller_epoch=CONTROLLER_EPOCH,
            leader=BROKERS[number % 2],
            leader_epoch=epoch,
            isr=BROKERS,
            partition_epoch=epoch,
            replicas=BROKERS,
            is_new=epoch == 1,
        )
        for number in range(count)
    ]
    topic = LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=states)
    return LeaderAndIsrRequest(
        controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH, broker_epoch=-1, topic_states=[topic]
    )


class SlowDisks:
    """Making a log takes its time, by the broker's clock."""

    def __init__(self, broker: LedBroker, cost_ms: int) -> None:
        self._create = broker.node.log_dirs.create
        self._broker = broker
        self._cost_ms = cost_ms
        broker.node.log_dirs.create = self  # type: ignore[method-assign, assignment]

    def __call__(self, *arguments: object, **settings: object) -> object:
        self._broker.clock.now_ms += self._cost_ms
        return self._create(*arguments, **settings)  # type: ignore[arg-type]


def test_long_request_leaves_the_loop_after_each_slice() -> None:
    broker = LedBroker(brokers=BROKERS)
    done: list[int] = []
    broker.node.control_requests.put(
        a_request(broker, 30, cost_ms=SLICE_MS // 4, done=done), broker.node.runtime.own
    )

    assert len(done) == 4
    broker.node.on_tick()
    assert len(done) == 8
    finish(broker)
    assert len(done) == 30
    assert broker.node.control_requests.is_empty


def test_next_request_waits_until_the_one_before_is_done() -> None:
    broker = LedBroker(brokers=BROKERS)
    first: list[int] = []
    second: list[int] = []
    broker.node.control_requests.put(
        a_request(broker, 3, cost_ms=SLICE_MS, done=first), broker.node.runtime.own
    )
    put(broker, a_request(broker, 1, cost_ms=0, done=second))

    assert (len(first), len(second)) == (1, 0)
    broker.node.on_tick()
    assert (len(first), len(second)) == (2, 0)
    finish(broker)
    assert (len(first), len(second)) == (3, 1)


def test_request_that_fails_does_not_hold_up_the_next() -> None:
    broker = LedBroker(brokers=BROKERS)
    first: list[int] = []
    second: list[int] = []
    third: list[int] = []
    broker.node.control_requests.put(
        a_request(broker, 2, cost_ms=SLICE_MS, done=first), broker.node.runtime.own
    )
    broker.node.control_requests.put(
        a_request(broker, 2, cost_ms=0, done=second, fails=True), broker.node.runtime.own
    )
    put(broker, a_request(broker, 2, cost_ms=0, done=third))

    broker.node.on_tick()
    broker.node.on_tick()
    with pytest.raises(ValueError, match="this request fails"):
        broker.node.on_tick()
    finish(broker)

    assert (first, second, third) == ([0, 1], [0], [0, 1])
    assert broker.node.control_requests.is_empty


def test_whoever_ordered_what_fails_later_is_hung_up_on_and_may_order_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the controller would wait for an answer as long as for one that is lost on its way."""
    broker = LedBroker(brokers=BROKERS)
    monkeypatch.setattr(broker.node, "apply_metadata", lambda update: {}["a mistake"])
    put(broker, a_request(broker, 2, cost_ms=SLICE_MS, done=[]))
    controller = broker.connect()
    broker.send(controller, news_of_a_move(2), 8)

    broker.node.on_tick()
    broker.node.on_tick()
    with pytest.raises(KeyError):
        broker.node.on_tick()
    broker.settle()

    assert [each.connection for each in broker.closed] == [controller]


def test_clients_are_served_between_the_portions_of_a_large_assignment() -> None:
    broker = LedBroker(brokers=BROKERS)
    broker.tell_metadata(**{f"p{number}": BROKERS[number % 2] for number in range(10)})
    broker.node.configs._topic_overrides[TOPIC] = {}
    SlowDisks(broker, SLICE_MS)
    controller = broker.connect()
    broker.send(controller, leader_and_isr(10), 7)

    assert not broker.take_answers(controller, LeaderAndIsrResponse, 7)
    broker.node.on_tick()
    assert broker.produce_now(a_batch("meanwhile"), partition=0, acks=1).error_code == 0
    assert not broker.take_answers(controller, LeaderAndIsrResponse, 7)

    finish(broker)
    (answer,) = broker.take_answers(controller, LeaderAndIsrResponse, 7)
    assert [each.error_code for each in answer.topics[0].partition_errors] == [0] * 10


def test_stop_comes_after_the_assignment_that_was_ordered_before_it() -> None:
    broker = LedBroker(brokers=BROKERS)
    broker.tell_metadata(**{f"p{number}": BROKERS[number % 2] for number in range(4)})
    broker.node.configs._topic_overrides[TOPIC] = {}
    SlowDisks(broker, SLICE_MS)
    controller = broker.connect()
    broker.send(controller, leader_and_isr(4), 7)
    stop = StopReplicaRequest(
        controller_id=SECOND,
        controller_epoch=CONTROLLER_EPOCH,
        broker_epoch=-1,
        topic_states=[a_stop(3)],
    )
    other = broker.connect()
    broker.send(other, stop, 4)

    assert not broker.take_answers(other, StopReplicaResponse, 4)
    finish(broker)

    assert broker.take_answers(controller, LeaderAndIsrResponse, 7)
    assert broker.take_answers(other, StopReplicaResponse, 4)
    assert broker.node.partitions.find(TOPIC, 3) is None
    assert broker.node.partitions.find(TOPIC, 2) is not None


def test_news_of_the_next_controller_come_after_the_order_of_the_last_one() -> None:
    """Otherwise a partition that moved on would be led here, and nobody would know to stop it."""
    broker = LedBroker(brokers=BROKERS)
    broker.tell_metadata(**{f"p{number}": BROKERS[number % 2] for number in range(4)})
    broker.node.configs._topic_overrides[TOPIC] = {}
    SlowDisks(broker, SLICE_MS)
    broker.send(broker.connect(), leader_and_isr(4), 7)
    other = broker.connect()
    broker.send(other, news_of_a_move(2), 8)

    assert not broker.take_answers(other, UpdateMetadataResponse, 8)
    finish(broker)

    assert broker.take_answers(other, UpdateMetadataResponse, 8)
    assert broker.node.partitions.find(TOPIC, 2) is None
    assert broker.node.partitions.find(TOPIC, 0) is not None


def news_of_a_move(partition: int) -> UpdateMetadataRequest:
    """The next controller has given the partition to others."""
    moved = UpdateMetadataPartitionState(
        partition_index=partition,
        controller_epoch=CONTROLLER_EPOCH + 1,
        leader=SECOND,
        leader_epoch=9,
        isr=(SECOND,),
        zk_version=9,
        replicas=(SECOND,),
    )
    topic = UpdateMetadataTopicState(topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=[moved])
    return UpdateMetadataRequest(
        controller_id=SECOND, controller_epoch=CONTROLLER_EPOCH + 1, broker_epoch=-1, topic_states=[topic]
    )


def a_stop(partition: int) -> StopReplicaTopicState:
    state = StopReplicaPartitionState(partition_index=partition, leader_epoch=-2, delete_partition=True)
    return StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])


def test_fetching_begins_once_when_all_partitions_of_an_order_are_there() -> None:
    broker = LedBroker(brokers=BROKERS)
    broker.tell_metadata(**{f"p{number}": SECOND for number in range(10)})
    broker.node.configs._topic_overrides[TOPIC] = {}
    SlowDisks(broker, SLICE_MS)
    broker.send(broker.connect(), leader_and_isr(10), 7)
    for _ in range(6):
        broker.node.on_tick()
        broker.settle()
    assert not broker.links
    finish(broker)
    broker.connect_links()

    (request,) = broker.peer_requests(FetchRequest)
    assert [each.partition for each in request[3].topics[0].partitions] == [1, 3, 5, 7, 9]


def test_broker_that_leaves_forgets_what_is_not_done() -> None:
    broker = LedBroker(brokers=BROKERS)
    done: list[int] = []
    broker.node.control_requests.put(
        a_request(broker, 10, cost_ms=SLICE_MS, done=done), broker.node.runtime.own
    )

    broker.node.begin_shutdown()
    broker.node.begin_shutdown()
    broker.settle()

    assert len(done) == 1
    assert broker.exit is not None
    assert broker.exit.code == 0


def test_the_turn_of_an_order_that_was_forgotten_meanwhile_does_nothing() -> None:
    broker = LedBroker(brokers=BROKERS)
    done: list[int] = []
    broker.node.control_requests.put(
        a_request(broker, 10, cost_ms=SLICE_MS, done=done), broker.node.runtime.own
    )

    broker.node.control_requests.clear()
    broker.node.on_tick()

    assert done == [0]
    assert broker.node.control_requests.is_empty
