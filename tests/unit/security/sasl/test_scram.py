"""SCRAM by the examples of the RFCs, and what it refuses."""

import pytest

from ottla.security.sasl.outcome import AuthenticationFailed, InvalidCredentials
from ottla.security.sasl.scram import (
    SHA_256,
    SHA_512,
    ScramCredential,
    credential_of,
    credential_text,
    parse_credential,
    salted_password,
)
from ottla.security.sasl.scram_client import ScramClient
from ottla.security.sasl.scram_server import ScramServer
from ottla.security.secret import Secret

SALT = b"[m\x99h\x9d\x125\x8e\xec\xa0K\x14\x126\xfa\x81"
"""RFC 7677's ``W22ZaJ0SNY7soEsUEjb6gQ==``."""
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PENCIL = Secret("pencil")


def credential(mechanism: str, password: Secret = PENCIL, iterations: int = 4096) -> ScramCredential:
    salted = salted_password(mechanism, password, SALT, iterations)
    return credential_of(mechanism, salted, SALT, iterations)


def server(mechanism: str = SHA_256, **users: ScramCredential) -> ScramServer:
    return ScramServer(mechanism, users or {"user": credential(mechanism)}, lambda: SERVER_NONCE)


def test_both_sides_say_what_rfc_7677_shows() -> None:
    broker, client = server(), ScramClient(SHA_256, "user", PENCIL, CLIENT_NONCE)

    first = client.first()
    answer = broker.evaluate(first)
    final = client.evaluate(answer)

    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert answer.startswith(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ=="
    )
    assert final is not None
    assert final.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert broker.evaluate(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert client.evaluate(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert broker.is_complete
    assert broker.user == "user"


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("user", ["alice", "a,b=c"])
def test_our_client_gets_in_at_our_broker_and_knows_that_it_is_one(mechanism: str, user: str) -> None:
    broker = server(mechanism, **{user: credential(mechanism)})
    client = ScramClient(mechanism, user, PENCIL, "nonce")

    final = client.evaluate(broker.evaluate(client.first()))

    assert final is not None
    assert client.evaluate(broker.evaluate(final)) is None
    assert broker.user == user


def test_a_broker_that_does_not_know_the_password_is_not_believed() -> None:
    client = ScramClient(SHA_256, "user", PENCIL, CLIENT_NONCE)
    client.evaluate(server().evaluate(client.first()))

    with pytest.raises(InvalidCredentials, match="does not know"):
        client.evaluate(b"v=AAAA")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=?,i=4096", "not SCRAM"),
        (b"e=other-error", "not SCRAM"),
        (b"\xff", "not SCRAM"),
    ],
)
def test_a_false_broker_gets_no_proof_from_our_client(answer: bytes, why: str) -> None:
    client = ScramClient(SHA_256, "user", PENCIL, CLIENT_NONCE)
    client.first()

    with pytest.raises(InvalidCredentials, match=why):
        client.evaluate(answer)


@pytest.mark.parametrize(
    "final",
    [
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=AAAA",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=AAAA",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        b"",
        b"\xff\xfe",
    ],
)
def test_a_proof_that_is_none_lets_nobody_in(final: bytes) -> None:
    broker = server()
    broker.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")

    with pytest.raises(InvalidCredentials):
        broker.evaluate(final)

    assert not broker.is_complete


def test_a_replayed_proof_fails_at_the_next_login() -> None:
    client = ScramClient(SHA_256, "user", PENCIL, CLIENT_NONCE)
    proof = client.evaluate(server().evaluate(client.first()))
    assert proof is not None
    next_time = ScramServer(SHA_256, {"user": credential(SHA_256)}, lambda: "another-nonce")
    next_time.evaluate(client.first())

    with pytest.raises(InvalidCredentials, match="nonce"):
        next_time.evaluate(proof)


def test_somebody_elses_identity_is_refused_in_kafkas_words() -> None:
    with pytest.raises(AuthenticationFailed, match="different from username"):
        server().evaluate(b"n,a=root,n=user,r=x")


def test_a_credential_is_kept_as_kafka_keeps_it() -> None:
    text = credential_text(credential(SHA_256))

    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert parse_credential(text) == credential(SHA_256)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=AAAA",
        "salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=many",
        "salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=4096,more=x",
        "salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=4096,salt=AAAA",
        "salt=?,stored_key=AAAA,server_key=AAAA,iterations=4096",
    ],
)
def test_a_credential_that_kafka_would_not_read_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"SCRAM|base 64"):
        parse_credential(text)


def test_no_secret_shows_in_a_repr() -> None:
    stored = credential(SHA_256)

    assert "pencil" not in f"{PENCIL!r} {PENCIL}"
    assert stored.stored_key.hex() not in repr(stored)
    assert repr(stored) == "ScramCredential(iterations=4096)"
