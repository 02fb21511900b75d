"""How clients log in on SASL listeners, from the file's settings."""

from __future__ import annotations

import re

import pytest

from ottla.config.areas import BrokerConfig
from ottla.config.broker_file import BrokerFile, read_broker_file
from ottla.security.sasl.mechanisms import SaslLogin
from ottla.security.secret import Secret
from support.security.broker import PLAIN_MODULE, SCRAM_MODULE

PLAIN_KEY = "listener.name.inside.plain.sasl.jaas.config"
SCRAM_KEY = "listener.name.inside.scram-sha-512.sasl.jaas.config"
OWN = 'username="broker" password="hush"'
SOUND = {
    "broker.id": "1",
    "zookeeper.connect": "zk:2181",
    "listeners": "INSIDE://one:9092",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.inside.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    PLAIN_KEY: f'{PLAIN_MODULE} required {OWN} user_broker="hush" user_alice="quiet";',
}


def read(**changes: str | None) -> BrokerFile:
    """Settings by Kafka's name; None takes one away."""
    properties = {**SOUND, **changes}
    return read_broker_file({name: text for name, text in properties.items() if text is not None})


def sound(**changes: str | None) -> BrokerConfig:
    file = read(**changes)
    assert file.config is not None, file.problems
    return file.config


def test_a_listener_has_mechanisms_users_and_the_brokers_own_login() -> None:
    listeners = sound().listeners

    inside = listeners.sasl["INSIDE"]
    assert inside.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert inside.plain_users == {"broker": Secret("hush"), "alice": Secret("quiet")}
    assert listeners.logins == {"INSIDE": SaslLogin("PLAIN", "broker", Secret("hush"))}


def test_no_password_shows_in_the_configuration() -> None:
    shown = repr(sound())

    assert "hush" not in shown
    assert "quiet" not in shown


def test_settings_that_are_obeyed_are_not_called_unknown() -> None:
    file = read(**{"listener.name.inside.plain.connections.max.reauth.ms": "5", "listener.name.x.y": "z"})

    assert file.unknown == ["listener.name.x.y"]


def test_the_nearest_lifetime_counts() -> None:
    config = sound(
        **{
            "connections.max.reauth.ms": "1",
            "listener.name.inside.connections.max.reauth.ms": "2",
            "listener.name.inside.plain.connections.max.reauth.ms": "3",
        }
    )

    assert config.listeners.sasl["INSIDE"].max_reauth_ms == {"PLAIN": 3, "SCRAM-SHA-512": 2}


def test_brokers_may_come_through_a_listener_that_asks_nobody() -> None:
    config = sound(
        **{
            "listeners": "INSIDE://one:9092,PLAINTEXT://one:9093",
            "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            PLAIN_KEY: f'{PLAIN_MODULE} required user_alice="quiet";',
        }
    )

    assert list(config.listeners.sasl) == ["INSIDE"]
    assert config.listeners.logins == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"listener.name.inside.sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "does not speak GSSAPI yet"),
        ({"listener.name.inside.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, "OAUTHBEARER"),
        ({"listener.name.inside.sasl.enabled.mechanisms": ""}, "names no mechanism"),
        ({"listener.name.inside.sasl.enabled.mechanisms": None}, "does not speak GSSAPI yet"),
        ({PLAIN_KEY: None}, f"{PLAIN_KEY} is missing"),
        ({PLAIN_KEY: f"{PLAIN_MODULE} required {OWN}"}, "does not end with a semicolon"),
        ({PLAIN_KEY: f"{SCRAM_MODULE} required {OWN};"}, "knows .*PlainLoginModule only"),
        ({PLAIN_KEY: "com.sun.security.auth.module.JndiLoginModule required;"}, "JndiLoginModule"),
        ({PLAIN_KEY: f'{PLAIN_MODULE} required user_a="b";'}, "as whom this broker logs in"),
        ({"sasl.mechanism.inter.broker.protocol": None}, "GSSAPI must be among the mechanisms"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, f"{SCRAM_KEY} must say"),
        ({"listener.name.inside.connections.max.reauth.ms": "soon"}, "is not a number"),
        ({"sasl.server.callback.handler.class": "acme.Handler"}, "does not do this yet"),
        ({"listener.name.inside.plain.sasl.login.class": "acme.Login"}, "does not do this yet"),
        ({"listener.name.inside.principal.builder.class": "acme.Builder"}, "does not do this yet"),
        ({"delegation.token.secret.key": "hush"}, r"delegation.token.secret.key=\[hidden\]"),
    ],
)
def test_what_would_let_in_others_than_the_file_says_refuses_the_start(
    changes: dict[str, str | None], words: str
) -> None:
    file = read(**changes)

    assert file.config is None
    assert re.search(words, "\n".join(file.problems)), file.problems
    assert "hush" not in str(file.problems)
