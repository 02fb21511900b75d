"""How the client logs in, against brokers in memory."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.engine.tasks import Operation, ask
from ottla.client.errors import LoginFailed
from ottla.client.sasl_settings import read_login
from ottla.model.errors import ErrorCode
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.secret import Secret
from ottla.wire.apis.metadata import MetadataRequest, MetadataResponse
from ottla.wire.apis.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.apis.sasl_handshake import SaslHandshakeResponse
from ottla.wire.keys import ApiKey
from support.client.fake_cluster import FakeCluster
from support.client.producing import a_producer, a_record
from support.security.broker import PLAIN_MODULE, SCRAM_MODULE, client_settings

ALICE = SaslLogin("PLAIN", "alice", Secret("hush"))
WELCOME = SaslHandshakeResponse(mechanisms=("PLAIN",))
LIFETIME_MS = 10_000


def cluster_with(*granted: Any) -> FakeCluster:
    """Brokers that ask who comes; what the next logins get."""
    cluster = FakeCluster(login=ALICE)
    cluster.script(ApiKey.SASL_HANDSHAKE, *[WELCOME for _ in range(20)])
    cluster.script(ApiKey.SASL_AUTHENTICATE, *granted)
    return cluster


def metadata() -> Operation[MetadataResponse]:
    return ask(1, MetadataRequest(topics=[]), MetadataResponse)


def known(cluster: FakeCluster) -> FakeCluster:
    assert cluster.run(cluster.engine.refresh(cluster.now_ms + 10_000))
    return cluster


def kinds(cluster: FakeCluster) -> list[str]:
    return [type(message).__name__ for _, _, message in cluster.asked]


def test_nothing_but_the_login_is_sent_before_the_broker_has_let_us_in() -> None:
    cluster = known(cluster_with(SaslAuthenticateResponse()))

    assert kinds(cluster) == [
        "ApiVersionsRequest",
        "SaslHandshakeRequest",
        "SaslAuthenticateRequest",
        "MetadataRequest",
    ]
    ((_, _, token),) = cluster.requests(ApiKey.SASL_AUTHENTICATE)
    assert bytes(token.auth_bytes) == b"\0alice\0hush"


def test_a_refused_login_is_told_with_its_reason_and_without_the_password() -> None:
    refusal = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed: no")
    cluster = cluster_with(*[refusal for _ in range(20)])

    began_ms = cluster.now_ms

    with pytest.raises(LoginFailed, match="user 'alice': Authentication failed: no") as told:
        cluster.run(cluster.engine.refresh(cluster.now_ms + 60_000))

    assert cluster.now_ms < began_ms + 1_000, "waiting mends no password"
    assert "hush" not in str(told.value)


def test_records_of_whoever_is_not_let_in_fail_at_once() -> None:
    refusal = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed: no")
    cluster = cluster_with(*[refusal for _ in range(20)])
    began_ms = cluster.now_ms

    delivery = a_producer(cluster).send("orders", a_record(b"a"))
    cluster.run_until(lambda: delivery.is_done)

    assert isinstance(delivery.error, LoginFailed)
    assert cluster.now_ms < began_ms + 1_000


def test_a_mechanism_that_the_broker_lacks_is_told_with_those_it_has() -> None:
    cluster = FakeCluster(login=ALICE)
    refusal = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-512",)
    )
    cluster.script(ApiKey.SASL_HANDSHAKE, *[refusal for _ in range(20)])

    with pytest.raises(LoginFailed, match=r"does not take PLAIN \(it takes SCRAM-SHA-512\)"):
        cluster.run(cluster.engine.refresh(cluster.now_ms + 1_000))


def test_a_login_is_renewed_before_it_ends_and_requests_meanwhile_wait() -> None:
    granted = SaslAuthenticateResponse(session_lifetime_ms=LIFETIME_MS)
    cluster = known(cluster_with(*[granted for _ in range(20)]))
    cluster.run(metadata())
    logins = len(cluster.requests(ApiKey.SASL_AUTHENTICATE))
    cluster.asked.clear()

    cluster.pass_time(8_900)
    cluster.run(metadata())
    assert kinds(cluster) == ["MetadataRequest"]
    cluster.pass_time(200)
    cluster.run(metadata())

    assert kinds(cluster)[1:] == ["SaslHandshakeRequest", "SaslAuthenticateRequest", "MetadataRequest"]
    assert logins >= 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafkas_settings_say_who_logs_in(mechanism: str) -> None:
    login = read_login(client_settings(mechanism, "alice", "hush"))

    assert login == SaslLogin(mechanism, "alice", Secret("hush"))
    assert "hush" not in repr(login)


def test_without_a_login_nobody_logs_in() -> None:
    assert read_login({}) is None
    assert read_login({"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN"}) is None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"security.protocol": "SASL_TLS"}, "security.protocol=SASL_TLS is not supported"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI is not supported"),
        ({"sasl.jaas.config": None}, "needs a user and a password"),
        ({"sasl.jaas.config": f"{PLAIN_MODULE} required password=hush;"}, "needs username and password"),
        ({"sasl.jaas.config": f"{SCRAM_MODULE} required;"}, "but PLAIN needs"),
        ({"sasl.jaas.config": f"{PLAIN_MODULE} required password=1hush;"}, "numbers and signs need quotes"),
    ],
)
def test_settings_that_make_no_login_are_refused_without_the_password(
    settings: dict[str, str | None], why: str
) -> None:
    changed = {**client_settings("PLAIN", "alice", "hush"), **settings}

    with pytest.raises(ValueError, match=why) as refused:
        read_login({name: text for name, text in changed.items() if text is not None})

    assert "hush" not in str(refused.value)
