"""AlterPartition: what is sent to the controller, and what its answers do."""

from ottla.model.errors import ErrorCode
from ottla.wire.apis.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from support.bench.led_broker import ME, SECOND, THIRD, TOPIC_ID, LedBroker, a_batch

LAG_MS = 30_000


def a_leader_whose_follower_lags() -> LedBroker:
    broker = LedBroker().lead()
    broker.produce_now(a_batch("a"))
    broker.fetch_now(1, replica=SECOND)
    broker.advance(LAG_MS + LAG_MS // 2 + 100)
    broker.fetch_now(1, replica=SECOND)
    greet(broker)
    return broker


def greet(broker: LedBroker) -> None:
    """The controller's link opens and tells its versions."""
    broker.connect_links()
    if broker.peer_requests(ApiVersionsRequest):
        versions = [ApiVersion(api_key=56, min_version=0, max_version=3)]
        broker.answer_peer(ApiVersionsRequest, ApiVersionsResponse(api_keys=versions))


def proposed(broker: LedBroker) -> AlterPartitionRequest:
    request = broker.last_request(AlterPartitionRequest)[3]
    assert isinstance(request, AlterPartitionRequest)
    return request


def sent(broker: LedBroker) -> int:
    return len(broker.peer_requests(AlterPartitionRequest))


def reply(
    broker: LedBroker, *, error: int = 0, isr: tuple[int, ...] = (), version: int = 2, top: int = 0
) -> None:
    row = ResponsePartitionData(
        partition_index=0,
        error_code=error,
        leader_id=ME,
        leader_epoch=broker.epoch,
        isr=isr,
        partition_epoch=version,
    )
    topics = [] if top else [ResponseTopicData(topic_id=TOPIC_ID, partitions=[row])]
    broker.answer_peer(AlterPartitionRequest, AlterPartitionResponse(error_code=top, topics=topics))


def test_a_lagging_follower_is_proposed_away() -> None:
    broker = a_leader_whose_follower_lags()

    link, _, version, request = broker.last_request(AlterPartitionRequest)

    assert version == 3
    assert broker.links[link].host == "host2"
    assert (request.broker_id, request.broker_epoch) == (ME, broker.node.identity.broker_epoch)
    [partition] = request.topics[0].partitions
    assert [member.broker_id for member in partition.new_isr_with_epochs] == [ME, SECOND]
    assert (partition.leader_epoch, partition.partition_epoch) == (broker.epoch, broker.epoch)
    assert partition.leader_recovery_state == 0


def test_success_lets_the_high_watermark_and_waiting_producers_go_on() -> None:
    """KAFKA-13091."""
    broker = a_leader_whose_follower_lags()
    waiting = broker.produce(a_batch("b"), acks=-1, timeout_ms=60_000)
    broker.fetch_now(2, replica=SECOND)
    assert broker.produced(waiting) is None

    reply(broker, isr=(ME, SECOND))

    assert broker.log.high_watermark == 2
    assert broker.produced(waiting) is not None
    assert broker.partition.partition_epoch == 2


def test_a_stale_broker_epoch_is_tried_again_on_the_same_link() -> None:
    broker = a_leader_whose_follower_lags()
    before = sent(broker)
    link = broker.last_request(AlterPartitionRequest)[0]

    reply(broker, top=ErrorCode.STALE_BROKER_EPOCH)
    broker.advance(60)

    assert sent(broker) == before + 1
    assert broker.last_request(AlterPartitionRequest)[0] == link


def test_a_deposed_controller_is_left_and_the_new_one_asked() -> None:
    broker = a_leader_whose_follower_lags()
    link = broker.last_request(AlterPartitionRequest)[0]

    reply(broker, error=ErrorCode.NOT_CONTROLLER)
    broker.node.metadata.controller = THIRD
    broker.advance(60)
    greet(broker)

    newest = broker.last_request(AlterPartitionRequest)
    assert newest[0] != link
    assert broker.links[newest[0]].host == "host3"


def test_a_lost_answer_is_asked_again_and_already_so_is_success() -> None:
    """KAFKA-14144."""
    broker = a_leader_whose_follower_lags()
    link = broker.last_request(AlterPartitionRequest)[0]
    before = sent(broker)

    broker.node.on_peer_lost(link, "reset")
    broker.settle()
    broker.advance(200)
    greet(broker)
    assert sent(broker) == before + 1
    reply(broker, isr=(ME, SECOND), version=3)

    assert broker.partition.leader.isr.pending is None
    assert broker.partition.leader.isr.committed == (ME, SECOND)


def test_a_partition_missing_in_the_answer_is_sent_again() -> None:
    broker = a_leader_whose_follower_lags()
    before = sent(broker)

    broker.answer_peer(AlterPartitionRequest, AlterPartitionResponse(topics=[]))
    broker.advance(60)

    assert sent(broker) == before + 1


def test_a_refused_change_is_given_up() -> None:
    broker = a_leader_whose_follower_lags()
    before = sent(broker)

    reply(broker, error=ErrorCode.INELIGIBLE_REPLICA)

    assert broker.partition.leader.isr.pending is None
    assert sent(broker) == before


def test_after_a_newer_decision_the_old_wish_is_not_sent_again() -> None:
    """KAFKA-12751."""
    broker = a_leader_whose_follower_lags()
    before = sent(broker)

    broker.lead(isr=(ME, SECOND, THIRD))
    reply(broker, top=ErrorCode.STALE_BROKER_EPOCH)
    broker.advance(1_000)

    assert sent(broker) == before


def test_a_caught_up_follower_is_proposed_with_the_broker_epoch_of_its_fetch() -> None:
    broker = LedBroker().lead(isr=(ME,))
    broker.produce_now(a_batch("a"))

    broker.fetch_now(1, replica=SECOND, replica_epoch=55)
    greet(broker)

    [partition] = proposed(broker).topics[0].partitions
    assert [(each.broker_id, each.broker_epoch) for each in partition.new_isr_with_epochs] == [
        (ME, -1),
        (SECOND, 55),
    ]


def test_only_one_request_is_in_flight() -> None:
    broker = a_leader_whose_follower_lags()
    before = sent(broker)
    broker.tell_metadata(p1=ME)
    broker.assign(ME, isr=(ME,), partition=1, epoch=1)

    broker.fetch_now(0, replica=THIRD, partitions=(1,), epoch=1)
    broker.advance(100)
    assert sent(broker) == before
    reply(broker, isr=(ME, SECOND))
    broker.advance(0)

    assert sent(broker) == before + 1


def a_producer_that_waits_for_one_about_to_join() -> tuple[LedBroker, int]:
    """The third broker is at the end and proposed, then falls silent; only the second has the records."""
    broker = LedBroker().lead(isr=(ME, SECOND))
    broker.fetch_now(0, replica=SECOND)
    broker.fetch_now(0, replica=THIRD)
    greet(broker)
    waiting = broker.produce(a_batch("a"), acks=-1, timeout_ms=120_000)
    broker.fetch_now(1, replica=SECOND)
    assert broker.produced(waiting) is None
    return broker, waiting


def test_a_producer_need_not_wait_for_a_member_that_died_before_it_was_taken_in() -> None:
    broker, waiting = a_producer_that_waits_for_one_about_to_join()

    reply(broker, error=ErrorCode.INELIGIBLE_REPLICA)
    assert broker.produced(waiting) is None
    broker.brokers = (ME, SECOND)
    broker.tell_metadata()

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == 0


def test_nor_when_the_metadata_tell_of_the_death_first() -> None:
    broker, waiting = a_producer_that_waits_for_one_about_to_join()

    broker.brokers = (ME, SECOND)
    broker.tell_metadata()
    assert broker.produced(waiting) is None
    reply(broker, error=ErrorCode.INELIGIBLE_REPLICA)

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == 0


def test_one_that_is_about_to_join_and_falls_silent_is_waited_for_no_longer_than_the_allowed_lag() -> None:
    broker, waiting = a_producer_that_waits_for_one_about_to_join()
    reply(broker, error=ErrorCode.INELIGIBLE_REPLICA)

    for _ in range(4):
        broker.advance(LAG_MS // 2)
        broker.fetch_now(1, replica=SECOND)

    answer = broker.produced(waiting)
    assert answer is not None
    assert answer.error_code == 0


def test_a_new_controller_is_asked_at_once_though_the_old_one_is_silent() -> None:
    broker = a_leader_whose_follower_lags()
    assert sent(broker) == 1

    broker.controller = THIRD
    broker.tell_metadata()
    broker.advance(100)
    greet(broker)

    assert sent(broker) == 2
