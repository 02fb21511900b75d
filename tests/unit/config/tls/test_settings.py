"""``ssl.…`` settings of listeners, out of a broker's file."""

from __future__ import annotations

import pytest

from ottla.config.broker_file import BrokerFile, read_broker_file
from ottla.config.tls.settings import PROTOCOLS, StoreSettings, TlsSettings
from ottla.security.secret import Secret

SOUND = {
    "broker.id": "1",
    "zookeeper.connect": "zk:2181",
    "listeners": "OUTSIDE://one:9092,INSIDE://one:9093",
    "listener.security.protocol.map": "OUTSIDE:SSL,INSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "ssl.keystore.location": "/etc/kafka/own.jks",
    "ssl.keystore.password": "hush",
}


def read(**changes: str | None) -> BrokerFile:
    """Settings by Kafka's name; None takes one away."""
    properties = {**SOUND, **changes}
    return read_broker_file({name: text for name, text in properties.items() if text is not None})


def outside(**changes: str | None) -> TlsSettings:
    file = read(**changes)
    assert file.config is not None, file.problems
    assert set(file.config.listeners.tls) == {"OUTSIDE"}
    return file.config.listeners.tls["OUTSIDE"]


def test_an_encrypted_listener_has_its_stores_and_kafkas_defaults() -> None:
    settings = outside()

    assert settings.keystore == StoreSettings(location="/etc/kafka/own.jks", password=Secret("hush"))
    assert not settings.truststore
    assert (settings.client_auth, settings.protocols, settings.ciphers) == ("none", PROTOCOLS, ())
    assert settings.checks_host


def test_what_a_listener_sets_for_itself_counts_more() -> None:
    own = {
        "ssl.client.auth": "requested",
        "listener.name.outside.ssl.client.auth": "required",
        "listener.name.outside.ssl.keystore.location": "/etc/kafka/outside.jks",
    }
    settings = outside(**own)

    assert settings.client_auth == "required"
    assert settings.keystore.location == "/etc/kafka/outside.jks"
    assert read(**own).unknown == []


def test_who_logs_in_need_not_show_a_certificate_unless_the_listener_itself_says_so() -> None:
    sasl: dict[str, str | None] = {
        "listener.security.protocol.map": "OUTSIDE:SASL_SSL,INSIDE:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.client.auth": "required",
    }

    assert outside(**sasl).client_auth == "none"
    assert outside(**sasl, **{"listener.name.outside.ssl.client.auth": "required"}).client_auth == "required"


def test_no_secret_shows() -> None:
    pem: dict[str, str | None] = {
        "ssl.keystore.location": None,
        "ssl.keystore.password": None,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": "marker-key",
        "ssl.keystore.certificate.chain": "chain",
        "ssl.key.password": "marker-password",
    }

    assert "marker" not in repr(outside(**pem))
    assert "marker" not in repr(read(**{**pem, "ssl.keystore.type": "JKS"}).problems)


@pytest.mark.parametrize(
    ("suites", "protocols", "ciphers"),
    [
        (
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            ("TLSv1.2",),
            ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ),
        (
            "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256",
            ("TLSv1.3",),
            (),
        ),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", ("TLSv1.2",), ("AES128-SHA",)),
    ],
)
def test_cipher_suites_have_kafkas_names(
    suites: str, protocols: tuple[str, ...], ciphers: tuple[str, ...]
) -> None:
    settings = outside(**{"ssl.cipher.suites": suites})

    assert (settings.protocols, settings.ciphers) == (protocols, ciphers)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ssl.keystore.location": None}, "OUTSIDE speaks SSL and has no certificate"),
        ({"ssl.keystore.type": "PEM"}, "a PEM store has no password"),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type=BKS"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"}, "not both"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "list all suites of TLSv1.3"),
        ({"ssl.cipher.suites": "SSL_NULL"}, "knows no such cipher suite"),
        ({"ssl.principal.mapping.rules": "rule:x"}, "ssl.principal.mapping.rules"),
        ({"ssl.engine.factory.class": "acme.Factory"}, "ssl.engine.factory.class=acme.Factory"),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.type=PEM"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "write https"),
    ],
)
def test_what_cannot_be_obeyed_refuses_the_start_by_name(changes: dict[str, str | None], why: str) -> None:
    file = read(**changes)

    assert file.config is None
    assert any(why in problem for problem in file.problems), file.problems
