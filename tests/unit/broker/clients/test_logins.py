"""Clients of a listener that asks who they are, before a whole node."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.clients.logins import LOGIN_MS_MAX
from ottla.broker.outputs import LimitFrames, Output
from ottla.model.errors import ErrorCode
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.sasl.scram import SHA_256, credential_of, credential_text, salted_password
from ottla.security.secret import Secret
from ottla.wire.apis import message_classes
from ottla.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.apis.api_versions import ApiVersionsRequest
from ottla.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.wire.apis.metadata import MetadataRequest
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.apis.sasl_handshake import SaslHandshakeRequest
from ottla.wire.headers import decode_response
from ottla.wire.keys import ApiKey
from ottla.wire.login import ClientLogin, version_of
from ottla.znodes.codec_config import ConfigNode, encode_config, encode_config_change
from ottla.zookeeper.ops import Create
from support.bench.node_bench import Bench, a_config
from support.security.broker import PLAIN_MODULE

DELAY_MS = 100
GOOD = b"\0alice\0alice-secret"
LIFETIME_MS = 60_000
JAAS = f'{PLAIN_MODULE} required user_alice="alice-secret" user_bob="bob-secret";'


class DoorBench(Bench):
    """A node with a listener for anybody, and one for alice."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        settings = {
            "listeners": "PLAINTEXT://one:9092,SAFE://one:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SAFE:SASL_PLAINTEXT",
            "listener.name.safe.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.safe.plain.sasl.jaas.config": JAAS,
            "connections.max.reauth.ms": str(lifetime_ms),
        }
        super().__init__(a_config(**settings))
        self.limits: list[LimitFrames] = []
        self.start()

    def _perform(self, output: Output) -> None:
        if isinstance(output, LimitFrames):
            self.limits.append(output)
        super()._perform(output)

    def talk(self, connection: int, message: Any, version: int) -> Any:
        """The answer on that connection, or None if there is none yet."""
        before = len(self.written)
        self.send(connection, message, version)
        return self.answer_to(message, version, before)

    def answer_to(self, message: Any, version: int, before: int) -> Any:
        frames = self.written[before:]
        if not frames:
            return None
        response = message_classes(ApiKey(message.spec.api_key))[1]
        return decode_response(response, version, b"".join(frames[0].parts)[4:])[1]

    def log_in(self, connection: int, token: bytes = GOOD) -> Any:
        assert self.talk(connection, SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        return self.talk(connection, SaslAuthenticateRequest(auth_bytes=token), 1)

    def is_served(self, connection: int) -> bool:
        return self.talk(connection, MetadataRequest(topics=None), 12) is not None

    @property
    def hung_up_on(self) -> list[int]:
        return [close.connection for close in self.closed]


def test_nobody_is_served_before_the_login_and_everybody_after_it() -> None:
    bench = DoorBench()
    connection, other = bench.connect("SAFE"), bench.connect("SAFE")

    assert not bench.is_served(other)
    assert bench.log_in(connection).error_code == 0

    assert bench.is_served(connection)
    login = bench.node.connections.get(connection)
    assert login is not None
    assert str(login.principal) == "User:alice"
    bench.advance(DELAY_MS)
    assert bench.hung_up_on == [other]


def test_large_requests_are_taken_from_the_login_on() -> None:
    bench = DoorBench()
    connection = bench.connect("SAFE")

    bench.log_in(connection)

    largest = bench.node.config.connections.socket_request_max_bytes
    assert bench.limits == [LimitFrames(connection, largest)]


def test_a_wrong_password_is_answered_late_and_everything_behind_it_is_dropped() -> None:
    bench = DoorBench()
    connection = bench.connect("SAFE")

    before = len(bench.written)
    assert bench.log_in(connection, b"\0alice\0wrong") is None
    assert not bench.is_served(connection)
    bench.advance(DELAY_MS - 1)
    assert len(bench.written) == before + 1  # of the handshake
    bench.advance(1)

    answer = bench.answer_to(SaslAuthenticateRequest(), 1, before + 1)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert bench.hung_up_on == [connection]
    assert "wrong" not in bench.closed[0].reason.replace("wrong password", "")


def test_a_client_that_leaves_while_it_waits_for_its_refusal_harms_nobody() -> None:
    bench = DoorBench()
    connection = bench.connect("SAFE")
    bench.log_in(connection, b"\0alice\0wrong")

    bench.node.on_client_lost(connection)
    bench.advance(10 * DELAY_MS)

    assert bench.hung_up_on == []
    assert len(bench.node.connections) == 0


def test_a_client_that_never_logs_in_is_hung_up_on() -> None:
    bench = DoorBench()
    silent, slow, done = bench.connect("SAFE"), bench.connect("SAFE"), bench.connect("SAFE")
    bench.talk(slow, ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    bench.log_in(done)

    bench.advance(LOGIN_MS_MAX)

    assert sorted(bench.hung_up_on) == [silent, slow]
    assert bench.is_served(done)


def test_a_client_does_not_write_lines_of_its_own_into_the_log() -> None:
    bench = DoorBench()
    connection = bench.connect("SAFE")

    bench.talk(connection, SaslHandshakeRequest(mechanism="X\nERROR all is lost" + "!" * 10_000), 1)
    bench.advance(DELAY_MS)

    (closed,) = bench.closed
    assert "\n" not in closed.reason
    assert len(closed.reason) < 400


def test_a_login_with_a_lifetime_ends_unless_it_is_renewed() -> None:
    bench = DoorBench(LIFETIME_MS)
    renewed, expired = bench.connect("SAFE"), bench.connect("SAFE")
    assert bench.log_in(renewed).session_lifetime_ms == LIFETIME_MS
    bench.log_in(expired)

    bench.advance(LIFETIME_MS - 1)
    assert bench.is_served(renewed)
    assert bench.is_served(expired)
    bench.advance(1)
    assert bench.log_in(renewed).error_code == 0

    assert bench.is_served(renewed)
    assert not bench.is_served(expired)
    assert bench.hung_up_on == [expired]


def test_a_login_is_not_renewed_twice_within_a_second() -> None:
    bench = DoorBench(LIFETIME_MS)
    connection = bench.connect("SAFE")
    bench.log_in(connection)
    bench.log_in(connection)

    bench.advance(999)
    refused = bench.talk(connection, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    bench.advance(1)

    assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert bench.log_in(connection).error_code == 0


@pytest.mark.parametrize("lifetime_ms", [0, LIFETIME_MS])
def test_requests_behind_one_that_waits_are_served_in_their_order(lifetime_ms: int) -> None:
    bench = DoorBench(lifetime_ms)
    connection = bench.connect("SAFE")
    bench.log_in(connection)
    before = len(bench.written)
    bench.zk_is_held = True

    bench.send(connection, DescribeUserScramCredentialsRequest(users=None), 0)
    bench.send(connection, MetadataRequest(topics=None), 12)
    assert len(bench.written) == before
    bench.zk_is_held = False
    while bench.held:
        bench.answer(bench.held.pop(0))
        bench.settle()

    assert len(bench.written) == before + 2


def held_behind_one_that_waits(bench: DoorBench, connection: int, *messages: tuple[Any, int]) -> None:
    bench.zk_is_held = True
    bench.send(connection, DescribeUserScramCredentialsRequest(users=None), 0)
    for message, version in messages:
        bench.send(connection, message, version)


def let_it_be_answered(bench: DoorBench) -> int:
    """How many answers that makes."""
    before = len(bench.written)
    bench.zk_is_held = False
    while bench.held:
        bench.answer(bench.held.pop(0))
        bench.settle()
    return len(bench.written) - before


def test_what_was_sent_in_time_is_not_served_once_the_login_has_expired() -> None:
    bench = DoorBench(LIFETIME_MS)
    connection = bench.connect("SAFE")
    bench.log_in(connection)
    held_behind_one_that_waits(bench, connection, (MetadataRequest(topics=None), 12))

    bench.advance(LIFETIME_MS)

    assert let_it_be_answered(bench) == 1
    assert bench.hung_up_on == [connection]


def test_nothing_is_served_between_the_steps_of_a_renewed_login_and_all_behind_it() -> None:
    bench = DoorBench(LIFETIME_MS)
    polite, hasty = bench.connect("SAFE"), bench.connect("SAFE")
    again = (SaslHandshakeRequest(mechanism="PLAIN"), 1)
    ask = (MetadataRequest(topics=None), 12)
    for connection in (polite, hasty):
        bench.log_in(connection)
    bench.advance(1_000)
    held_behind_one_that_waits(bench, polite, again, (SaslAuthenticateRequest(auth_bytes=GOOD), 1), ask)
    assert let_it_be_answered(bench) == 4
    held_behind_one_that_waits(bench, hasty, again, ask)
    let_it_be_answered(bench)
    bench.advance(DELAY_MS)

    assert bench.is_served(polite)
    assert bench.hung_up_on == [hasty]


def credential(password: str) -> str:
    salted = salted_password(SHA_256, Secret(password), b"salt", 4096)
    return credential_text(credential_of(SHA_256, salted, b"salt", 4096))


def gets_in(bench: DoorBench, password: str) -> bool:
    """Our own client's login, as bob."""
    connection = bench.connect("SAFE")
    login = ClientLogin(SaslLogin(SHA_256, "bob", Secret(password)), lambda: "nonce")
    request = login.first()
    while request is not None:
        answer = bench.talk(connection, request, version_of(request))
        if answer is None:
            return False
        following = login.answered(answer)
        if following is None:
            return bench.is_served(connection)
        request = following
    return False


def test_users_of_zookeeper_get_in_from_the_note_of_their_change_on() -> None:
    bench = DoorBench()
    assert not gets_in(bench, "one")

    bench.zk(Create("/config/users/bob", encode_config(ConfigNode({SHA_256: credential("one")}))))
    bench.zk(Create("/config/changes/config_change_", encode_config_change("users/bob"), sequential=True))

    assert gets_in(bench, "one")
    assert not gets_in(bench, "other")


def test_a_credential_that_nobody_can_read_lets_nobody_in_and_harms_nobody() -> None:
    bench = DoorBench()

    bench.zk(Create("/config/users/bob", encode_config(ConfigNode({SHA_256: "iterations=1"}))))
    bench.zk(Create("/config/changes/config_change_", encode_config_change("users/bob"), sequential=True))

    assert not gets_in(bench, "one")
    assert bench.is_served(bench.connect())


def upsertion(name: str = "bob", mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = salted_password(SHA_256, Secret("one"), b"salt", 4096)
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def as_controller() -> DoorBench:
    bench = DoorBench()
    bench.advance(1_000)
    assert bench.node.controller.is_active
    return bench


def test_whom_the_controller_adds_may_log_in() -> None:
    bench = as_controller()

    answer = bench.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion()]), 0)

    assert [(row.user, row.error_code) for row in answer.results] == [("bob", 0)]
    assert gets_in(bench, "one")
    removed = bench.ask(
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="bob", mechanism=1)]), 0
    )
    assert removed.results[0].error_code == 0
    assert not gets_in(bench, "one")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([upsertion(name="")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(mechanism=3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([upsertion(), upsertion()], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_a_mistake_spoils_the_changes_of_its_user_alone(
    changes: list[ScramCredentialUpsertion], error: ErrorCode
) -> None:
    bench = as_controller()
    carol = upsertion(name="carol")

    answer = bench.ask(AlterUserScramCredentialsRequest(upsertions=[*changes, carol]), 0)

    assert [row.error_code for row in answer.results] == [error, 0]
    described = bench.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    assert [row.user for row in described.results] == ["carol"]


def test_users_are_described_sorted_once_and_with_what_is_wrong() -> None:
    bench = as_controller()
    bench.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion(name="b"), upsertion(name="a")]), 0)

    everybody = bench.ask(DescribeUserScramCredentialsRequest(users=[]), 0)
    some = bench.ask(
        DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in ("a", "b", "b", "c")]), 0
    )

    assert [(row.user, row.credential_infos[0].iterations) for row in everybody.results] == [
        ("a", 4096),
        ("b", 4096),
    ]
    assert {row.user: row.error_code for row in some.results} == {
        "a": 0,
        "b": ErrorCode.DUPLICATE_RESOURCE,
        "c": ErrorCode.RESOURCE_NOT_FOUND,
    }


def test_whoever_failed_gets_no_second_try_on_the_same_connection() -> None:
    bench = DoorBench()
    connection = bench.connect("SAFE")
    bench.log_in(connection, b"\0alice\0wrong")

    assert bench.talk(connection, SaslHandshakeRequest(mechanism="PLAIN"), 1) is None
    assert bench.talk(connection, SaslAuthenticateRequest(auth_bytes=GOOD), 1) is None

    assert bench.node.connections.get(connection) is None, "its requests are not looked at"
    bench.advance(DELAY_MS)
    assert bench.hung_up_on == [connection]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"\0bob\0bob-secret", "Cannot change principals during re-authentication from User.alice: User.bob"),
        (b"bob\0alice\0alice-secret", "Client requested an authorization id that is different from username"),
    ],
)
def test_nobody_becomes_somebody_else(token: bytes, why: str) -> None:
    bench = DoorBench(LIFETIME_MS)
    connection = bench.connect("SAFE")
    bench.log_in(connection)
    before = len(bench.written)

    assert bench.log_in(connection, token) is None
    bench.advance(DELAY_MS)

    answer = bench.answer_to(SaslAuthenticateRequest(), 1, before + 1)
    assert why in answer.error_message
    assert bench.hung_up_on == [connection]
