"""Following what was followed before: by another fetcher, under another topic id, or a topic made anew."""

from dataclasses import replace

from ottla.model.errors import ErrorCode
from ottla.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.apis.list_offsets import ListOffsetsRequest
from ottla.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from support.bench.led_broker import CONTROLLER_EPOCH, SECOND, TOPIC, TOPIC_ID, LedBroker, a_batch


def a_follower() -> LedBroker:
    broker = LedBroker().follow(SECOND)
    broker.connect_links()
    return broker


def set_fetchers(broker: LedBroker, count: int) -> None:
    """num.replica.fetchers is changed while the broker runs."""
    before = broker.node.config
    after = replace(before, replication=replace(before.replication, num_replica_fetchers=count))
    broker.node.runtime.config = after
    broker.node.partitions.on_broker_config_changed(before, after)
    broker.settle()
    broker.connect_links()


def a_row(records: bytes = b"", error: int = 0) -> list[PartitionData]:
    return [
        PartitionData(
            partition_index=0,
            error_code=error,
            high_watermark=1 if records else 0,
            last_stable_offset=0,
            log_start_offset=0,
            records=records,
        )
    ]


def answer(broker: LedBroker, **rows: list[PartitionData]) -> None:
    """The leader's answer to the fetch in flight, by the names in ``IDS``."""
    topics = [FetchableTopicResponse(topic_id=IDS[name], partitions=row) for name, row in rows.items()]
    broker.answer_peer(FetchRequest, FetchResponse(session_id=77, responses=topics))


IDS = {"unnamed": bytes(16), TOPIC: TOPIC_ID, "other": bytes(range(50, 66)), "anew": bytes(range(100, 116))}


def stop(broker: LedBroker, *, delete: bool) -> None:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=delete)
    request = StopReplicaRequest(
        controller_id=SECOND,
        controller_epoch=CONTROLLER_EPOCH,
        topic_states=[StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])],
    )
    assert broker.ask(request, 4).error_code == 0


# --- another number of fetchers ---


def test_a_follower_that_waits_after_a_lost_connection_goes_on_with_another_number_of_fetchers() -> None:
    broker = a_follower()
    broker.node.on_peer_lost(broker.last_request(FetchRequest)[0], "reset")
    broker.settle()
    sent = len(broker.peer_requests(FetchRequest))

    set_fetchers(broker, 4)

    assert len(broker.peer_requests(FetchRequest)) == sent + 1


def test_a_follower_that_looks_for_its_leaders_offset_goes_on_with_another_number_of_fetchers() -> None:
    broker = a_follower()
    answer(broker, orders=a_row(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    broker.connect_links()
    assert broker.peer_requests(ListOffsetsRequest)
    sent = len(broker.peer_requests(FetchRequest))

    set_fetchers(broker, 4)

    assert len(broker.peer_requests(FetchRequest)) == sent + 1


def test_a_fenced_follower_waits_for_the_controller_whatever_the_number_of_fetchers() -> None:
    broker = a_follower()
    answer(broker, orders=a_row(error=ErrorCode.FENCED_LEADER_EPOCH))
    sent = len(broker.peer_requests(FetchRequest))

    set_fetchers(broker, 4)

    assert len(broker.peer_requests(FetchRequest)) == sent


def test_a_stopped_follower_stays_stopped_whatever_the_number_of_fetchers() -> None:
    broker = a_follower()
    stop(broker, delete=False)
    sent = len(broker.peer_requests(FetchRequest))

    set_fetchers(broker, 4)

    assert len(broker.peer_requests(FetchRequest)) == sent


# --- a topic made anew ---


def make_topic(broker: LedBroker, name: str, key: str | None = None) -> None:
    """The controller has this broker follow the only partition of a topic, new with this id."""
    broker.topic, broker.topic_id = name, IDS[key or name]
    broker.tell_metadata(p0=SECOND)
    assert broker.assigned_code(SECOND, epoch=0) == 0


def a_follower_of_two_topics() -> LedBroker:
    broker = LedBroker()
    make_topic(broker, "other")
    make_topic(broker, TOPIC)
    broker.connect_links()
    return broker


def test_records_of_a_deleted_topic_do_not_get_into_the_new_one_of_its_name() -> None:
    broker = a_follower_of_two_topics()
    stop(broker, delete=True)
    make_topic(broker, TOPIC, "anew")

    answer(broker, other=a_row(), orders=a_row(bytes(a_batch("of the deleted topic", leader_epoch=0))))

    assert (broker.log.end_offset, broker.log.high_watermark) == (0, 0)
    [asked] = broker.last_request(FetchRequest)[3].topics
    assert asked.topic_id == IDS["anew"]
    answer(broker, anew=a_row(bytes(a_batch("of the new topic", leader_epoch=0))))
    assert (broker.log.end_offset, broker.log.high_watermark) == (1, 1)


def test_the_ids_of_topics_that_left_are_forgotten() -> None:
    broker = a_follower_of_two_topics()
    stop(broker, delete=True)
    make_topic(broker, TOPIC, "anew")
    answer(broker, other=a_row(), orders=a_row())

    [fetcher] = broker.node.fetchers._by_place.values()

    assert fetcher._topic_names == {IDS["other"]: "other", IDS["anew"]: TOPIC}


def test_an_answer_that_names_a_topic_which_left_meanwhile_is_whole() -> None:
    broker = a_follower_of_two_topics()
    stop(broker, delete=True)

    answer(broker, other=a_row(bytes(a_batch("a", leader_epoch=0))), orders=a_row())

    assert broker.node.partitions.find("other", 0).log.end_offset == 1
    request = broker.last_request(FetchRequest)[3]
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert [each.topic_id for each in request.forgotten_topics_data] == [TOPIC_ID]


# --- an id that comes late ---


def test_a_follower_asks_for_a_topic_by_the_id_that_it_got_later() -> None:
    broker = LedBroker().follow(SECOND, topic_id=bytes(16))
    broker.connect_links()
    unknown = a_row(error=ErrorCode.UNKNOWN_TOPIC_ID)
    answer(broker, unnamed=unknown)

    assert broker.assigned_code(SECOND, epoch=broker.epoch) == 0
    broker.advance(0)

    [asked] = broker.last_request(FetchRequest)[3].topics
    assert asked.topic_id == TOPIC_ID
    answer(broker, orders=a_row(bytes(a_batch("a", leader_epoch=broker.epoch))))
    assert broker.log.end_offset == 1
