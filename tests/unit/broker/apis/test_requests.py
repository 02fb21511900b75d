"""From frame to handler: versions, unknown APIs, rubbish, and the list of what is spoken."""

import struct

import pytest

from ottla.broker.apis import APIS, Api
from ottla.broker.clients.request import Request
from ottla.broker.node import Node
from ottla.broker.runtime.tasks import Steps
from ottla.model.errors import ErrorCode
from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.apis.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.apis.end_txn import EndTxnRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest
from ottla.wire.headers import decode_response, frame_request
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import GetData
from support.bench.node_bench import Bench, a_config

KAFKA_39 = (
    "0:11 1:17 2:9 3:12 4:7 5:4 6:8 7:3 8:9 9:9 10:6 11:9 12:4 13:5 14:5 15:5 16:5 17:1 18:4 19:7 20:6 21:2"
    " 22:5 23:4 24:5 25:4 26:4 27:1 28:4 29:3 30:3 31:3 32:4 33:2 34:2 35:4 36:2 37:3 38:3 39:2 40:2 41:3"
    " 42:2 43:2 44:1 45:0 46:0 47:0 48:1 49:1 50:0 51:0 56:3 57:1 60:1 61:0 65:0 66:1 67:0"
)
"""What Apache Kafka 3.9 advertises in ZooKeeper mode, without 58, 68 and 69, which it does not serve."""


def raw(api_key: int, version: int, body: bytes = b"", client_id: bytes = b"x") -> memoryview:
    header = struct.pack(">hhih", api_key, version, 7, len(client_id)) + client_id
    return memoryview(bytearray(header + body))


def test_the_list_is_apaches_in_its_order_but_for_two_phase_commit() -> None:
    ours = KAFKA_39.replace(" 22:5 ", " 22:6 ")
    assert " ".join(f"{api.key}:{api.max_version}" for api in APIS) == ours
    assert {api.min_version for api in APIS} == {0}


def test_every_api_of_the_list_has_its_handler_and_its_messages() -> None:
    for api in APIS:
        api.load()
        request, _ = message_classes(api.key)
        assert api.request is request
        assert request.spec.versions[1] >= api.max_version
        assert callable(api.handle)


@pytest.mark.parametrize("two_phase", [False, True])
def test_api_versions_advertises_the_list(two_phase: bool) -> None:
    bench = Bench(config=a_config(transaction_two_phase_commit_enable=str(two_phase).lower())).start()

    answer = bench.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)

    advertised = " ".join(f"{row.api_key}:{row.max_version}" for row in answer.api_keys)
    assert advertised == (KAFKA_39.replace(" 22:5 ", " 22:6 ") if two_phase else KAFKA_39)
    assert answer.finalized_features_epoch == bench.node.features.epoch


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    bench = Bench().start()
    bench.node.on_request(bench.connect(), raw(18, 99, b"\0" * 9))
    bench.settle()

    correlation_id, answer = decode_response(ApiVersionsResponse, 0, b"".join(bench.written[-1].parts)[4:])

    assert correlation_id == 7
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.max_version) for row in answer.api_keys] == [(18, 4)]


@pytest.mark.parametrize("name", ["", "a b", "-x", "x.", "ä"])
def test_a_client_must_call_itself_something(name: str) -> None:
    bench = Bench().start()

    answer = bench.ask(ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == []


@pytest.mark.parametrize(
    ("api_key", "version"), [(58, 0), (68, 0), (99, 0), (-1, 0), (3, 13), (3, -1), (0, 12)]
)
def test_an_unknown_api_or_version_closes_the_connection(api_key: int, version: int) -> None:
    bench = Bench().start()

    bench.node.on_request(bench.connect(), raw(api_key, version))
    bench.settle()

    assert len(bench.closed) == 1
    assert bench.written == []


@pytest.mark.parametrize(
    "frame", [b"", b"\0", b"\0\3\0\0", b"\0\3\0\1\0\0\0\7\0\5abc", b"\0\3\0\1\0\0\0\7\xff\xff\x7f"]
)
def test_rubbish_closes_the_connection_and_nothing_else(frame: bytes) -> None:
    bench = Bench().start()

    bench.node.on_request(bench.connect(), memoryview(bytearray(frame)))
    bench.settle()

    assert len(bench.closed) == 1
    assert bench.exit is None
    assert bench.ask(MetadataRequest(topics=None), 12).cluster_id == bench.node.identity.cluster_id


def test_requests_of_one_read_are_answered_in_order() -> None:
    bench = Bench().start()
    connection = bench.connect()

    for correlation_id in range(50):
        frame = b"".join(frame_request(MetadataRequest(topics=None), 12, correlation_id, "x"))[4:]
        bench.node.on_request(connection, memoryview(bytearray(frame)))
    bench.settle()

    answered = [struct.unpack_from(">i", part, 4)[0] for write in bench.written for part in write.parts]
    assert answered == list(range(50))


def test_a_stopping_broker_hangs_up_instead_of_answering() -> None:
    bench = Bench(a_config(controlled_shutdown_enable="false")).start()
    connection = bench.connect()
    bench.node.begin_shutdown()
    bench.settle()

    bench.send(connection, MetadataRequest(topics=None), 12)

    assert bench.written == []
    assert len(bench.closed) == 1


def test_what_needs_security_is_refused_as_kafka_without_it_refuses() -> None:
    bench = Bench().start()

    acls = bench.ask(CreateAclsRequest(creations=[AclCreation(), AclCreation()]), 3)
    assert [row.error_code for row in acls.results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert bench.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_before_there_is_a_transaction_coordinator_clients_look_for_one() -> None:
    bench = Bench().start()

    found = bench.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)), 4)
    given = bench.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), 4)
    ended = bench.ask(EndTxnRequest(transactional_id="t"), 3)

    assert found.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert given.error_code == ended.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("is_answered", [False, True])
def test_nobody_waits_for_ever_when_a_handler_fails_after_zookeepers_answer(is_answered: bool) -> None:
    bench = Bench().start()

    def handle(node: Node, request: Request, body: ListGroupsRequest) -> None:
        def steps() -> Steps[None]:
            yield GetData("/anything")
            if is_answered:
                request.reply(ListGroupsResponse())
            raise ValueError("a mistake")

        node.tasks.spawn(steps(), request)

    api = Api(ApiKey.LIST_GROUPS, 0, 5, "groups.list_groups", "")
    api.load()
    api.handle = handle
    bench.node.apis[ApiKey.LIST_GROUPS] = api
    connection = bench.connect()

    with pytest.raises(ValueError, match="a mistake"):
        bench.send(connection, ListGroupsRequest(), 5)
    bench.settle()

    assert len(bench.written) == is_answered
    assert [close.connection for close in bench.closed] == ([] if is_answered else [connection])
