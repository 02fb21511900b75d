"""The authorization matrix, from the one list of APIs: who lacks a right is refused, who has it is not."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ottla.broker.access.authorizer import Authorizer
from ottla.broker.apis import APIS, guards
from ottla.config.areas import AuthorizerConfig
from ottla.model.errors import ErrorCode
from ottla.model.internal_topics import OFFSETS_TOPIC
from ottla.security.acls.kinds import Entry, Operation, Permission, Resource, ResourceType
from ottla.wire.apis import message_classes
from ottla.wire.keys import ApiKey
from ottla.zookeeper.ops import Check
from support.bench.led_broker import ME, TOPIC, TOPIC_ID, LedBroker, NoCandidate, a_batch
from support.bench.node_bench import a_config
from support.security.asks import ASKS, NOT_ASKED, Ask, Setting, settings

ANONYMOUS = "User:ANONYMOUS"
REFUSALS = {
    int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    int(ErrorCode.GROUP_AUTHORIZATION_FAILED),
    int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
HIDDEN = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}
"""Whoever lacks the right sees less; there is nothing to see on the bench."""
SILENT = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.OFFSET_FETCH, 1)}
"""Versions that have no place for the refusal: the answer is empty."""


class Leading(NoCandidate):
    """A controller that answers nothing, and is one."""

    is_active = True
    term = SimpleNamespace(fence=SimpleNamespace(check=Check("/controller", 0)))


@pytest.fixture(scope="module")
def broker() -> LedBroker:
    config = a_config(
        authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
        super_users=ANONYMOUS,
        offsets_topic_num_partitions=1,
    )
    led = LedBroker(config)
    led.node.controller = Leading()
    led.topic, led.topic_id = OFFSETS_TOPIC, bytes(range(16, 32))
    led.lead(isr=(ME,))
    led.topic, led.topic_id = TOPIC, TOPIC_ID
    led.lead(isr=(ME,))
    led.produce_now(a_batch("a"))
    led.advance(100)  # the coordinator reads its partition
    commit = next(question for question in ASKS if question.key is ApiKey.OFFSET_COMMIT)
    assert set(codes(msgspec.to_builtins(led.ask(commit.message(), commit.version)))) == {0}
    return led


def codes(value: Any) -> Iterator[int]:
    """All error codes of an answer, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("error_code"):
                yield inner
            else:
                yield from codes(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from codes(inner)


def under(broker: LedBroker, rules: tuple[tuple[Resource, Entry], ...]) -> None:
    """Nobody is a super user any more, and these are the rules."""
    authorizer = Authorizer(AuthorizerConfig())
    for resource, entry in rules:
        authorizer.put(resource, authorizer.rules.of(resource) | {entry})
    broker.node.authorizer = authorizer


def refusals(broker: LedBroker, question: Ask, setting: Setting) -> set[int]:
    """The refusals in the answer; none if the handler keeps it for later."""
    under(broker, setting.rules)
    connection = broker.connect()
    broker.send(connection, question.message(), question.version)
    answers = broker.take_answers(connection, message_classes(question.key)[1], question.version)
    broker.node.on_client_lost(connection)
    broker.settle()
    return {code for answer in answers for code in codes(msgspec.to_builtins(answer))} & REFUSALS


ROWS = [question for question in ASKS if question.key not in HIDDEN]


@pytest.mark.parametrize("question", ROWS, ids=str)
def test_who_lacks_a_right_is_refused_and_who_has_it_is_not(broker: LedBroker, question: Ask) -> None:
    is_silent = (question.key, question.version) in SILENT
    wrong = []
    for setting in settings(question, ANONYMOUS):
        found = refusals(broker, question, setting)
        if question.key is ApiKey.CREATE_TOPICS and "DescribeConfigs" in setting.name:
            continue  # told with a topic that was created, which takes a controller
        if question.key is ApiKey.DESCRIBE_CLUSTER:
            assert not found, "its bits alone need a right"
        elif (not found) != setting.is_allowed and not (is_silent and not found):
            wrong.append((setting.name, found))
    assert not wrong


def test_every_need_of_every_row_is_asked_for_and_has_its_guard() -> None:
    missing = []
    for api in APIS:
        clauses = [clause for clause in api.needs.split(", ") if clause]
        asked = {place for question in ASKS if question.key == api.key for place in question.needs}
        missing += [
            f"{api.key.name}: {clause}"
            for place, clause in enumerate(clauses)
            if place not in asked and (api.key, place) not in NOT_ASKED
        ]
        if clauses:
            guards.guard_of(api.key)
    assert not missing, "new rows need questions in tests/support/security/asks.py"


def test_apis_that_need_no_right_are_these_alone() -> None:
    assert {api.key.name for api in APIS if not api.needs} == {
        "SASL_HANDSHAKE",
        "API_VERSIONS",
        "SASL_AUTHENTICATE",
        "CREATE_DELEGATION_TOKEN",
        "RENEW_DELEGATION_TOKEN",
        "EXPIRE_DELEGATION_TOKEN",
        "DESCRIBE_DELEGATION_TOKEN",
    }


def test_a_producer_that_loses_its_right_is_refused_on_its_open_connection(broker: LedBroker) -> None:
    right = Entry(ANONYMOUS, "*", Operation.WRITE, Permission.ALLOW)
    under(broker, ((Resource(ResourceType.TOPIC, TOPIC), right),))
    connection = broker.connect()
    for _ in range(3):
        answer = broker.produced(broker.produce(a_batch("a"), connection=connection))
        assert answer is not None
        assert answer.error_code == 0
    end = broker.log.end_offset
    under(broker, ())

    refused = broker.produced(broker.produce(a_batch("a"), connection=connection))

    assert refused is not None
    assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert broker.log.end_offset == end
