"""What somebody tries who has some rights and wants more: nothing is done, told or kept for him."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla.broker.access.access import Access
from ottla.broker.access.authorizer import REMEMBERED_NAME_MAX, TOLD_MAX
from ottla.broker.apis import APIS, guards
from ottla.broker.clients.request import Request
from ottla.model.errors import ErrorCode as E
from ottla.model.internal_topics import TRANSACTIONS_TOPIC
from ottla.model.spread import coordinating_partition
from ottla.security.acls.kinds import Entry, Operation, Permission, Resource, ResourceType
from ottla.security.principal import Principal
from ottla.wire.apis import message_classes
from ottla.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.apis.delete_groups import DeleteGroupsRequest
from ottla.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.apis.describe_groups import DescribeGroupsRequest
from ottla.wire.apis.describe_transactions import DescribeTransactionsRequest
from ottla.wire.apis.end_txn import EndTxnRequest
from ottla.wire.apis.find_coordinator import FindCoordinatorRequest
from ottla.wire.apis.init_producer_id import InitProducerIdRequest
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.headers import decode_response
from ottla.wire.keys import ApiKey
from ottla.znodes import paths
from ottla.zookeeper.ops import GetChildren
from support.bench.controller_bench import ControllerBench, serving
from support.bench.led_broker import ME, SECOND, TOPIC, LedBroker, a_batch
from support.bench.node_bench import Bench, a_config

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
BOB = Principal("User", "bob")
ENVELOPE = 58
GUARDED: dict[str, object] = {"authorizer_class_name": AUTHORIZER, "super_users": "User:ANONYMOUS"}
O, T = Operation, ResourceType


def allow(operation: Operation, kind: ResourceType, name: str, **changes: Any) -> tuple[Resource, Entry]:
    return Resource(kind, name), Entry(str(BOB), "*", operation, changes.get("permission", Permission.ALLOW))


def deny(operation: Operation, kind: ResourceType, name: str) -> tuple[Resource, Entry]:
    return allow(operation, kind, name, permission=Permission.DENY)


def under(bench: Bench, *rules: tuple[Resource, Entry]) -> None:
    """These are bob's rules, and there are no others."""
    authorizer = bench.node.authorizer
    assert authorizer is not None
    for resource in authorizer.rules.resources():
        authorizer.put(resource, frozenset())
    for resource, entry in rules:
        authorizer.put(resource, authorizer.rules.of(resource) | {entry})


def bobs(bench: Bench) -> int:
    connection = bench.connect()
    bench.node.on_client_lost(connection)
    bench.node.on_client_connected(connection, "PLAINTEXT", "10.0.0.7", BOB)
    return connection


def as_bob(bench: Bench, message: Any, version: int) -> Any:
    before = len(bench.written)
    bench.send(bobs(bench), message, version)
    stream = b"".join(b"".join(map(bytes, write.parts)) for write in bench.written[before:])
    return decode_response(message_classes(ApiKey(message.spec.api_key))[1], version, stream[4:])[1]


@pytest.fixture
def leader() -> LedBroker:
    led = LedBroker(a_config(**GUARDED))
    led.lead(isr=(ME,))
    return led


@pytest.fixture
def controller() -> ControllerBench:
    bench: ControllerBench = serving(2, topics={TOPIC: ((1,),)}, **GUARDED)
    return bench


# ---- what is named by its id, or not at all


def test_nothing_is_deleted_by_its_id_that_one_may_not_describe(controller: ControllerBench) -> None:
    under(controller, allow(O.DELETE, T.TOPIC, TOPIC), deny(O.DESCRIBE, T.TOPIC, TOPIC))
    topic_id = controller.topic(TOPIC).topic_id

    row = as_bob(
        controller, DeleteTopicsRequest(topics=[DeleteTopicState(None, topic_id)], timeout_ms=1000), 6
    ).responses[0]

    assert (row.name, row.error_code) == (None, E.TOPIC_AUTHORIZATION_FAILED)
    assert controller.data(paths.topic(TOPIC)) is not None
    assert controller.zk(GetChildren(paths.DELETE_TOPICS)).names == ()


def test_by_its_id_who_may_describe_learns_its_name_and_may_still_not_delete(
    controller: ControllerBench,
) -> None:
    under(controller, allow(O.DESCRIBE, T.TOPIC, TOPIC))
    topic_id = controller.topic(TOPIC).topic_id

    row = as_bob(
        controller, DeleteTopicsRequest(topics=[DeleteTopicState(None, topic_id)], timeout_ms=1000), 6
    ).responses[0]

    assert (row.name, row.error_code) == (TOPIC, E.TOPIC_AUTHORIZATION_FAILED)
    assert controller.data(paths.topic(TOPIC)) is not None


@pytest.mark.parametrize(
    ("rules", "error", "is_made"),
    [
        ((), E.TOPIC_AUTHORIZATION_FAILED, False),
        ((allow(O.CREATE, T.TOPIC, "new"),), E.TOPIC_AUTHORIZATION_FAILED, False),
        ((allow(O.DESCRIBE, T.TOPIC, "new"),), E.TOPIC_AUTHORIZATION_FAILED, False),
        (
            (allow(O.DESCRIBE, T.TOPIC, "new"), allow(O.CREATE, T.TOPIC, "new")),
            E.LEADER_NOT_AVAILABLE,
            True,
        ),
        (
            (allow(O.DESCRIBE, T.TOPIC, "new"), allow(O.CREATE, T.CLUSTER, "kafka-cluster")),
            E.LEADER_NOT_AVAILABLE,
            True,
        ),
    ],
)
def test_asking_for_a_topic_creates_it_only_for_whom_may_describe_and_create_it(
    controller: ControllerBench, rules: tuple[tuple[Resource, Entry], ...], error: E, is_made: bool
) -> None:
    under(controller, *rules)
    question = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)

    answer = as_bob(controller, question, 12)

    assert [(row.name, row.error_code) for row in answer.topics] == [("new", error)]
    assert (controller.data(paths.topic("new")) is not None) is is_made


def test_hidden_topics_look_as_if_they_were_not_there(controller: ControllerBench) -> None:
    under(controller)

    everything = as_bob(controller, MetadataRequest(topics=None), 12)
    named = as_bob(
        controller, MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in (TOPIC, "nix")]), 12
    )

    assert everything.topics == []
    assert {(row.error_code, row.topic_id, len(row.partitions)) for row in named.topics} == {
        (E.TOPIC_AUTHORIZATION_FAILED, bytes(16), 0)
    }


# ---- several keys in one request


def test_of_many_keys_those_allowed_are_answered_at_their_places(leader: LedBroker) -> None:
    under(leader, allow(O.DESCRIBE, T.GROUP, "g"), allow(O.DESCRIBE, T.TOPIC, TOPIC))
    keys = ("h", "g", "h", "g")

    found = as_bob(leader, FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4).coordinators
    asked = [
        OffsetFetchRequestGroup(
            key, None, -1, [OffsetFetchRequestTopics(name, (0,)) for name in (TOPIC, "x")]
        )
        for key in keys
    ]
    fetched = as_bob(leader, OffsetFetchRequest(groups=asked), 9).groups

    assert [row.key for row in found] == [row.group_id for row in fetched] == list(keys)
    refused = E.GROUP_AUTHORIZATION_FAILED
    assert [row.error_code == refused for row in found] == [True, False, True, False]
    assert [row.error_code == refused for row in fetched] == [True, False, True, False]
    assert all(row.topics == [] for row in fetched if row.error_code == refused)


# ---- transactions


@pytest.fixture
def transaction(leader: LedBroker) -> LedBroker:
    """Somebody's transaction over one topic."""
    leader.topic, leader.topic_id = TRANSACTIONS_TOPIC, b"transactions....."[:16]
    leader.epoch = 0
    leader.node.producer_ids._next_block = range(40, 1040)
    leader.tell_metadata((ME,), p0=ME)
    assert leader.assigned_code(ME, isr=(ME,)) == 0
    leader.advance(1000)
    assert coordinating_partition("pay", 1) == 0
    begun = leader.ask(InitProducerIdRequest(transactional_id="pay", transaction_timeout_ms=60_000), 4)
    assert (begun.error_code, begun.producer_id) == (0, 40)
    assert _added(leader.ask(adding(TOPIC), 3)) == [0]
    return leader


def adding(*topics: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="pay",
        v3_and_below_producer_id=40,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in topics],
    )


def _added(answer: Any) -> list[int]:
    rows = answer.results_by_topic_v3_and_below
    return [row.results_by_partition[0].partition_error_code for row in rows]


def test_of_a_transaction_only_topics_are_told_that_one_may_describe(transaction: LedBroker) -> None:
    question = DescribeTransactionsRequest(transactional_ids=("pay", "other"))

    under(transaction, allow(O.DESCRIBE, T.TRANSACTIONAL_ID, "pay"))
    blind = as_bob(transaction, question, 0).transaction_states
    under(transaction, allow(O.DESCRIBE, T.TRANSACTIONAL_ID, "pay"), allow(O.DESCRIBE, T.TOPIC, TOPIC))
    seeing = as_bob(transaction, question, 0).transaction_states

    told = [
        [(row.transactional_id, row.error_code, [topic.topic for topic in row.topics]) for row in each]
        for each in (blind, seeing)
    ]
    refused = ("other", E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, [])
    assert told == [[("pay", 0, []), refused], [("pay", 0, [TOPIC]), refused]]


def test_nobody_ends_or_extends_the_transaction_of_another(transaction: LedBroker) -> None:
    refused = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    under(transaction, allow(O.WRITE, T.TOPIC, TOPIC), allow(O.READ, T.GROUP, "g"))
    end = EndTxnRequest(transactional_id="pay", producer_id=40, producer_epoch=0, committed=True)
    offsets = AddOffsetsToTxnRequest(transactional_id="pay", producer_id=40, producer_epoch=0, group_id="g")

    assert as_bob(transaction, end, 3).error_code == refused
    assert as_bob(transaction, offsets, 3).error_code == refused
    assert as_bob(transaction, InitProducerIdRequest(transactional_id="pay"), 4).error_code == refused
    assert _added(as_bob(transaction, adding(TOPIC), 3)) == [refused]

    state = transaction.ask(DescribeTransactionsRequest(transactional_ids=("pay",)), 0).transaction_states[0]
    assert (state.transaction_state, state.producer_id, state.producer_epoch) == ("Ongoing", 40, 0)


def test_one_forbidden_topic_keeps_all_out_of_a_transaction(transaction: LedBroker) -> None:
    under(transaction, allow(O.WRITE, T.TRANSACTIONAL_ID, "pay"), allow(O.WRITE, T.TOPIC, TOPIC))
    answer = as_bob(transaction, adding(TOPIC, "secret", TRANSACTIONS_TOPIC), 3)
    forbidden = E.TOPIC_AUTHORIZATION_FAILED
    assert _added(answer) == [E.OPERATION_NOT_ATTEMPTED, forbidden, forbidden]


@pytest.mark.parametrize("name", [None, "other"])
def test_a_transactional_batch_without_the_right_to_its_id_is_not_written(
    leader: LedBroker, name: str | None
) -> None:
    under(leader, allow(O.WRITE, T.TOPIC, TOPIC), allow(O.WRITE, T.TRANSACTIONAL_ID, "pay"))
    end = leader.log.end_offset
    batch = a_batch("a", is_transactional=True, producer_id=40, producer_epoch=0, base_sequence=0)

    answer = leader.produced(leader.produce(batch, transactional_id=name, connection=bobs(leader)))

    assert answer is not None
    assert answer.error_code == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert leader.log.end_offset == end


def test_a_transactional_batch_does_not_hide_behind_another(leader: LedBroker) -> None:
    under(leader, allow(O.WRITE, T.TOPIC, TOPIC))
    end = leader.log.end_offset
    hidden = a_batch("b", is_transactional=True, producer_id=40, producer_epoch=0, base_sequence=0)

    for first in (a_batch("a"), b""):
        batches = bytearray(first) + hidden
        answer = leader.produced(leader.produce(batches, connection=bobs(leader)))
        assert answer is not None
        assert answer.error_code in (E.INVALID_RECORD, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert leader.log.end_offset == end


# ---- brokers' requests


def test_who_says_to_be_a_follower_moves_nothing(leader: LedBroker) -> None:
    leader.lead(isr=(ME, SECOND))
    leader.produce_now(a_batch("a"))
    under(leader, allow(O.READ, T.TOPIC, TOPIC))
    watermark = leader.log.high_watermark

    answer = leader.fetched(leader.fetch(leader.log.end_offset, replica=SECOND, connection=bobs(leader)))

    assert answer is not None
    row = answer.responses[0].partitions[0]
    assert (row.error_code, row.high_watermark) == (E.TOPIC_AUTHORIZATION_FAILED, -1)
    assert leader.log.high_watermark == watermark == 0


def test_an_envelope_is_not_opened(leader: LedBroker) -> None:
    connection = bobs(leader)
    frame = ENVELOPE.to_bytes(2, "big") + bytes(2) + bytes(4) + b"\xff\xff" + bytes(64)
    leader.node.on_request(connection, memoryview(bytearray(frame)))
    leader.settle()
    assert [close.connection for close in leader.closed] == [connection]
    assert not [write for write in leader.written if write.connection == connection]


# ---- rights that change meanwhile


def test_a_parked_fetch_tells_nothing_once_the_right_is_gone(leader: LedBroker) -> None:
    under(leader, allow(O.READ, T.TOPIC, TOPIC))
    connection = bobs(leader)
    leader.fetch(0, connection=connection, max_wait_ms=500)
    assert leader.fetched(connection) is None

    under(leader)
    leader.produce_now(a_batch("secret"))
    leader.advance(500)

    answer = leader.fetched(connection)
    assert answer is not None
    row = answer.responses[0].partitions[0]
    assert (row.error_code, row.high_watermark, row.records or None) == (
        E.TOPIC_AUTHORIZATION_FAILED, -1, None,
    )  # fmt: skip


def test_the_fetch_session_of_another_opens_no_topic(leader: LedBroker) -> None:
    leader.produce_now(a_batch("secret"))
    under(leader)
    theirs = leader.fetched(leader.fetch(0, session=(0, 0)))
    assert theirs is not None
    assert theirs.responses[0].partitions[0].records

    leader.produce_now(a_batch("more"))
    connection = bobs(leader)
    leader.fetch(0, session=(theirs.session_id, 1), partitions=(), connection=connection)
    taken = leader.fetched(connection)

    assert taken is not None
    assert [row.error_code for row in taken.responses[0].partitions] == [E.TOPIC_AUTHORIZATION_FAILED]
    assert not taken.responses[0].partitions[0].records


# ---- memory, time and disk


def test_names_that_clients_make_up_are_not_kept(leader: LedBroker) -> None:
    authorizer = leader.node.authorizer
    assert authorizer is not None
    before = len(authorizer._verdicts)
    for number in range(20):
        as_bob(leader, DescribeGroupsRequest(groups=(f"{number}" * (REMEMBERED_NAME_MAX + 1),)), 5)
    assert len(authorizer._verdicts) == before
    as_bob(leader, DescribeGroupsRequest(groups=("g",)), 5)
    assert len(authorizer._verdicts) == before + 1


def test_a_long_name_does_not_fill_the_audit_log(leader: LedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        as_bob(leader, DescribeGroupsRequest(groups=("g" * 30_000,)), 5)
    assert [len(line) < TOLD_MAX + 300 for line in caplog.messages] == [True]


class Name(str):
    """Counts comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (lambda names: DescribeGroupsRequest(groups=names), 5),
        (lambda names: DeleteGroupsRequest(groups_names=names), 2),
        (lambda names: DescribeTransactionsRequest(transactional_ids=names), 0),
    ],
    ids=["describe-groups", "delete-groups", "describe-transactions"],
)
def test_many_refused_names_cost_steps_in_their_number(leader: LedBroker, message: Any, version: int) -> None:
    """Looked for one by one in a list, a request of one MiB would hold up the broker for an hour."""

    names = tuple(Name(f"n{number}") for number in range(300))
    Name.compared = 0
    body = message(names)
    key = ApiKey(body.spec.api_key)
    connection = leader.node.connections.get(bobs(leader))
    assert connection is not None
    request = Request(connection, key, version, 0, None, 0)
    authorizer = leader.node.authorizer
    assert authorizer is not None
    guard = guards.guard_of(key)
    assert guard is not None
    rights = next(api.rights for api in APIS if api.key is key)
    guard(leader.node, Access(authorizer, request, rights), request, body)
    assert Name.compared < 10 * len(names)
