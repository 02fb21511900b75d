"""The same doors on both kinds of brokers: one listener without, and two with logins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.processes.apache import ApacheBroker
from support.processes.broker_process import HOST, BrokerProcess
from support.processes.ottla_broker import OttlaBroker
from support.processes.ports import free_port

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
ALICE, ALICES_PASSWORD = "alice", "alice-secret"
BOB, BOBS_PASSWORD = "bob", "bob-secret"
BROKERS_USER, BROKERS_PASSWORD = "broker", "broker-secret"
LIFETIME_MS = 3_600_000
SHORT_LIFETIME_MS = 2_000

KINDS: dict[str, type[BrokerProcess]] = {"apache": ApacheBroker, "ottla": OttlaBroker}


@dataclass(frozen=True, slots=True)
class Doors:
    """A broker's ports: ``s`` asks for a login, on ``r`` it holds an hour, on ``q`` two seconds."""

    plain: int
    s: int
    r: int
    q: int
    connect: str
    """Its ZooKeeper."""
    log_file: Path


def settings_of_a_listener(name: str) -> dict[str, object]:
    """All mechanisms, with users of its own."""
    prefix = f"listener.name.{name}"
    users = f'user_{ALICE}="{ALICES_PASSWORD}" user_{BOB}="{BOBS_PASSWORD}"'
    return {
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }


def guarded_broker(kind: str, broker_id: int, zk_connect: str, **more: object) -> tuple[BrokerProcess, Doors]:
    """A broker whose own affairs go over PLAINTEXT, with doors for clients."""
    plain, s, r, q = (free_port() for _ in range(4))
    settings: dict[str, object] = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},S://{HOST}:{s},R://{HOST}:{r},Q://{HOST}:{q}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,S:SASL_PLAINTEXT,R:SASL_PLAINTEXT,"
        "Q:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        **settings_of_a_listener("s"),
        **settings_of_a_listener("r"),
        **settings_of_a_listener("q"),
        "listener.name.r.connections.max.reauth.ms": LIFETIME_MS,
        "listener.name.q.plain.connections.max.reauth.ms": SHORT_LIFETIME_MS,
        **more,
    }
    broker = KINDS[kind](broker_id, zk_connect, plain, **settings)
    return broker, Doors(plain, s, r, q, zk_connect, broker.log_file)


def closed_broker(kind: str, broker_id: int, zk_connect: str, mechanism: str) -> BrokerProcess:
    """A broker that nobody reaches without a login, other brokers included."""
    port = free_port()
    prefix = "listener.name.inside"
    own = f'username="{BROKERS_USER}" password="{BROKERS_PASSWORD}"'
    users = f'user_{BROKERS_USER}="{BROKERS_PASSWORD}" user_{ALICE}="{ALICES_PASSWORD}"'
    settings: dict[str, object] = {
        "listeners": f"INSIDE://{HOST}:{port}",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {own} {users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required {own};",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required {own};",
    }
    return KINDS[kind](broker_id, zk_connect, port, **settings)


def client_settings(mechanism: str, user: str, password: str) -> dict[str, str]:
    """A client's properties, by Kafka's names."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }
