"""A broker tells at its start if the others will not take its word, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.access.own_rights import why_not_heard
from ottla.security.acls.kinds import Entry, Operation, Permission, Resource, ResourceType
from ottla.security.acls.rules import AclRules
from ottla.server.tls.doors import TlsDoors
from ottla.znodes import codec_acl
from ottla.zookeeper.ops import Create
from support.bench.node_bench import Bench, a_config
from support.security.tls import of_a_broker

AUTHORIZER: dict[str, object] = {"authorizer_class_name": "kafka.security.authorizer.AclAuthorizer"}
CLUSTER = Resource(ResourceType.CLUSTER, "kafka-cluster")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGS_IN: dict[str, object] = {
    "listeners": "IN://one:9092",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.in.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": f'{MODULE} required username="it s me" password="x";',
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("this broker comes to the others as ")]


def rules(*entries: Entry) -> AclRules:
    made = AclRules()
    made.put(CLUSTER, entries)
    return made


def entry(user: str, host: str = "*", permission: Permission = Permission.ALLOW) -> Entry:
    return Entry(f"User:{user}", host, Operation.CLUSTER_ACTION, permission)


def test_a_broker_that_the_others_will_not_hear_warns_with_the_next_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Bench(a_config(**AUTHORIZER, super_users="User:admin")).start()
    (warning,) = warnings_of(caplog)
    assert "'User:ANONYMOUS'" in warning
    assert "super.users" in warning
    command = "ottla acls --add --cluster --operation ClusterAction --allow-principal User:ANONYMOUS"
    assert warning.endswith(command)


def test_no_warning_for_super_users_rules_or_brokers_without_an_authorizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Bench(a_config(**AUTHORIZER, super_users="User:admin;User:ANONYMOUS")).start()
    first = Bench().start()
    first.zk(Create("/kafka-acl", b""))
    first.zk(Create("/kafka-acl/Cluster", b""))
    first.zk(Create(codec_acl.path(CLUSTER), codec_acl.encode([entry("ANONYMOUS")])))
    second = Bench(a_config(**AUTHORIZER, broker_id=2), tree=first.tree)
    second.session = 101
    second.start()
    assert warnings_of(caplog) == []


def test_it_is_judged_by_the_user_that_it_logs_in_as() -> None:
    listeners = a_config(**{name.replace(".", "_"): value for name, value in LOGS_IN.items()}).listeners
    why = why_not_heard(rules(entry("ANONYMOUS")), listeners, None)
    assert why is not None
    assert why.endswith("--allow-principal 'User:it s me'")
    assert why_not_heard(rules(entry("it s me")), listeners, None) is None
    assert why_not_heard(rules(entry("it s me", "10.0.0.7")), listeners, None) is None
    denied = entry("*", permission=Permission.DENY)
    assert why_not_heard(rules(entry("it s me", "10.0.0.7"), denied), listeners, None) is not None


@pytest.mark.parametrize(("client_auth", "user"), [("none", "ANONYMOUS"), ("required", "CN=broker")])
def test_over_tls_it_is_judged_by_its_certificate_where_the_others_ask_for_one(
    tmp_path: Path, client_auth: str, user: str
) -> None:
    store = tmp_path / "broker.pem"
    store.write_text(of_a_broker().both)
    listeners = a_config(
        listeners="SSL://one:9092",
        security_inter_broker_protocol="SSL",
        ssl_keystore_type="PEM",
        ssl_keystore_location=store,
        ssl_client_auth=client_auth,
    ).listeners
    subject = TlsDoors(listeners.tls).subject("SSL")
    assert why_not_heard(rules(entry(user)), listeners, subject) is None
    why = why_not_heard(rules(), listeners, subject)
    assert why is not None
    assert f"'User:{user}'" in why
