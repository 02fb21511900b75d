"""Blocks of producer ids from the controller, and the controlled way out."""

from typing import Any

from ottla.model.errors import ErrorCode
from ottla.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from ottla.wire.headers import frame_response
from ottla.znodes import paths
from ottla.zookeeper.ops import Create
from support.bench.node_bench import Bench, a_config

CONTROLLER = 2


class ControlledBench(Bench):
    """A node whose cluster has another broker as controller; the test answers for that one."""

    def __init__(self, **settings: object) -> None:
        super().__init__(a_config(**settings))
        self.tree.open_session(900)
        self.tree.apply(Create(paths.CONTROLLER, b'{"version":2,"brokerid":2,"timestamp":"1"}'), 900, 1)
        self.start()
        endpoint = UpdateMetadataEndpoint(port=9092, host="two", listener="PLAINTEXT")
        brokers = [UpdateMetadataBroker(id=broker, endpoints=[endpoint]) for broker in (1, CONTROLLER)]
        self.ask(UpdateMetadataRequest(controller_id=CONTROLLER, controller_epoch=1, live_brokers=brokers), 8)

    def connect_links(self) -> None:
        self.advance(0)
        for link in list(self.links):
            self.node.on_peer_connected(link)
        self.settle()

    def reply(self, asked: tuple[int, int, int, Any], message: Any) -> None:
        link, correlation_id, version, _ = asked
        frame = b"".join(frame_response(message, version, correlation_id))[4:]
        self.node.on_peer_frame(link, memoryview(bytearray(frame)))
        self.settle()

    def give_block(self, start: int, length: int = 10, error: int = 0) -> None:
        if not self.peer_requests(AllocateProducerIdsRequest):
            self.connect_links()
            spoken = ApiVersionsResponse(api_keys=[ApiVersion(api_key=67)])
            self.reply(self.peer_requests(ApiVersionsRequest)[-1], spoken)
        answer = AllocateProducerIdsResponse(
            error_code=error, producer_id_start=start, producer_id_len=length
        )
        self.reply(self.peer_requests(AllocateProducerIdsRequest)[-1], answer)

    def init(self) -> tuple[int, int]:
        answer = self.ask(InitProducerIdRequest(transactional_id=None), 4)
        return answer.error_code, answer.producer_id


def test_the_first_producer_waits_for_a_block_and_later_ones_draw_from_it() -> None:
    bench = ControlledBench()
    assert bench.peer_requests(AllocateProducerIdsRequest) == []

    assert bench.init() == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    bench.give_block(5000)

    assert [bench.init() for _ in range(3)] == [(0, 5000), (0, 5001), (0, 5002)]
    body = bench.peer_requests(AllocateProducerIdsRequest)[0][3]
    assert body.broker_id == 1
    assert body.broker_epoch == bench.node.identity.broker_epoch


def test_the_next_block_is_fetched_when_nine_tenths_are_used() -> None:
    bench = ControlledBench()
    bench.init()
    bench.give_block(100)
    for _ in range(8):
        bench.init()
    assert len(bench.peer_requests(AllocateProducerIdsRequest)) == 1

    bench.init()
    assert len(bench.peer_requests(AllocateProducerIdsRequest)) == 2
    bench.give_block(700)

    assert [bench.init() for _ in range(3)] == [(0, 109), (0, 700), (0, 701)]


def test_after_an_error_nothing_is_asked_until_somebody_wants_an_id() -> None:
    bench = ControlledBench()
    bench.init()
    bench.give_block(0, error=ErrorCode.NOT_CONTROLLER)
    bench.advance(60_000)
    assert len(bench.peer_requests(AllocateProducerIdsRequest)) == 1

    bench.init()

    assert len(bench.peer_requests(AllocateProducerIdsRequest)) == 2


def test_ids_that_were_given_before_are_not_taken_again() -> None:
    bench = ControlledBench()
    bench.init()
    bench.give_block(100)
    for _ in range(9):
        bench.init()

    bench.give_block(50)

    assert bench.init() == (0, 109)
    assert bench.init() == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)


def test_a_lost_controller_does_not_stop_later_requests() -> None:
    bench = ControlledBench()
    bench.init()
    bench.advance(0)
    for link in list(bench.links):
        bench.node.on_peer_lost(link, "refused")
    bench.links.clear()

    bench.init()
    bench.advance(2_000)
    bench.give_block(10)

    assert bench.init() == (0, 10)


def shut_down(bench: ControlledBench) -> list[tuple[int, int, int, Any]]:
    bench.node.begin_shutdown()
    bench.settle()
    bench.connect_links()
    return bench.peer_requests(ControlledShutdownRequest)


def test_a_controlled_shutdown_asks_the_controller_then_closes_everything() -> None:
    bench = ControlledBench()
    asked = shut_down(bench)
    assert [(version, body.broker_id) for _, _, version, body in asked] == [(3, 1)]
    assert bench.accepts

    bench.reply(asked[0], ControlledShutdownResponse())

    assert bench.exit is not None
    assert bench.exit.code == 0
    assert not bench.accepts
    assert bench.disk.exists("/data/.kafka_cleanshutdown")


def test_a_shutdown_that_does_not_succeed_is_tried_again_and_then_done_anyway() -> None:
    bench = ControlledBench(controlled_shutdown_max_retries=3, controlled_shutdown_retry_backoff_ms=500)
    asked = shut_down(bench)
    bench.reply(asked[-1], ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH))
    assert len(bench.peer_requests(ControlledShutdownRequest)) == 1

    bench.advance(500)
    still_led = [RemainingPartition(topic_name="orders", partition_index=0)]
    bench.reply(
        bench.peer_requests(ControlledShutdownRequest)[-1],
        ControlledShutdownResponse(remaining_partitions=still_led),
    )
    bench.advance(500)
    assert len(bench.peer_requests(ControlledShutdownRequest)) == 3
    assert bench.exit is None
    bench.reply(
        bench.peer_requests(ControlledShutdownRequest)[-1],
        ControlledShutdownResponse(remaining_partitions=still_led),
    )

    assert bench.exit is not None
    assert bench.exit.code == 0


def test_a_second_signal_does_not_wait_for_the_controller() -> None:
    bench = ControlledBench()
    shut_down(bench)

    bench.node.begin_shutdown()
    bench.settle()

    assert bench.exit is not None
    assert bench.exit.code == 0


def test_without_a_controller_the_broker_leaves_after_its_tries() -> None:
    bench = ControlledBench(controlled_shutdown_retry_backoff_ms=100)
    bench.ask(UpdateMetadataRequest(controller_id=-1, controller_epoch=1), 8)

    shut_down(bench)
    bench.advance(1_000)

    assert bench.exit is not None
    assert bench.exit.code == 0


def test_a_broker_that_is_asked_to_end_while_it_starts_ends() -> None:
    bench = Bench()
    bench.zk_is_held = True
    bench.start()

    bench.node.begin_shutdown()
    bench.settle()

    assert bench.exit is not None
    assert bench.exit.code == 0
