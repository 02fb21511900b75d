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
from support.led_broker import CONTROLLER_EPOCH, SECOND, TOPIC, TOPIC_ID, LedBroker


def a_follower() -> LedBroker:
    broker = LedBroker().follow(SECOND)
    broker.connect_links()
    return broker


def set_fetchers(broker: LedBroker, count: int) -> None:
    """num.replica.fetchers is changed while the broker runs."""
    before = broker.node.config
    after = replace(before, replication=replace(before.replication, num_replica_fetchers=count))
    broker.node.configs.broker = after
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


IDS = {TOPIC: TOPIC_ID, "other": bytes(range(50, 66)), "anew": bytes(range(100, 116))}


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
