"""Whom a listener lets in, from a broker's settings."""

from __future__ import annotations

import pytest

from ottla.insight.access.listeners import Listener, listeners

MAP = "OPEN:PLAINTEXT,SAFE:SASL_SSL,CERT:SSL"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, Listener("PLAINTEXT", "PLAINTEXT", "nothing", True, True)),
        ({"listeners": "OPEN://h:1"}, Listener("OPEN", "PLAINTEXT", "nothing", True, True)),
        (
            {"listeners": "SAFE://h:1", "sasl.enabled.mechanisms": "PLAIN"},
            Listener("SAFE", "SASL_SSL", "PLAIN", False, False),
        ),
        (
            {"listeners": "CERT://h:1", "ssl.client.auth": "none"},
            Listener("CERT", "SSL", "nothing", True, False),
        ),
        (
            {"listeners": "CERT://h:1", "listener.name.cert.ssl.client.auth": "required"},
            Listener("CERT", "SSL", "certificate", False, False),
        ),
    ],
)
def test_a_listener_is_open_where_nobody_is_asked_and_readable_without_tls(
    settings: dict[str, str], expected: Listener
) -> None:
    assert listeners({"listener.security.protocol.map": MAP, **settings}) == [expected]


def test_a_broker_that_tells_nothing_has_none() -> None:
    assert listeners({}) == []
