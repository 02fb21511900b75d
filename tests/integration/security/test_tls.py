"""Two brokers that speak TLS with each other and with clients, real certificates and real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer

from ottla.client.admin.topics import a_topic, create_topics
from ottla.client.aio.client import Client as AsyncClient
from ottla.client.blocking.client import Client
from ottla.client.config import ClientConfig
from ottla.client.sasl_settings import read_encryption, read_login
from ottla.model.ids import TopicPartition
from support.processes.broker_process import HOST
from support.processes.commands import run_command, run_here
from support.processes.ottla_broker import OttlaBroker, ottla_brokers
from support.processes.ports import free_port
from support.running.waiting import wait_until
from support.security.broker import ALICE, ALICES_PASSWORD, client_settings, settings_of_a_listener
from support.security.tls import Files, a_client_context, authority, files_in
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.slow]
LARGE = bytes(range(256)) * 2_000


@dataclass(frozen=True, slots=True)
class Locked:
    """The brokers, and their doors by name."""

    brokers: list[OttlaBroker]
    files: Files
    tls: str
    sasl: str

    def sasl_settings(self) -> dict[str, str]:
        login = client_settings("PLAIN", ALICE, ALICES_PASSWORD)
        return {**login, **self.files.client_settings("SASL_SSL")}


@pytest.fixture(scope="module")
def locked(chroots: Chroots, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    connect = chroots.make().connect
    files = files_in(tmp_path_factory.mktemp("tls"))
    brokers, doors = [], []
    for number in (1, 2):
        plain, tls, sasl, inside = (free_port() for _ in range(4))
        doors.append((tls, sasl))
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{plain},TLS://{HOST}:{tls},SASL://{HOST}:{sasl},INSIDE://{HOST}:{inside}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_SSL,INSIDE:SSL",
            "inter.broker.listener.name": "INSIDE",
            "listener.name.inside.ssl.client.auth": "required",
            "default.replication.factor": 2,
            "min.insync.replicas": 2,
            **files.settings,
            **settings_of_a_listener("sasl"),
        }
        brokers.append(OttlaBroker(number, connect, plain, **settings))
    with ottla_brokers(*brokers):
        addresses = (",".join(f"{HOST}:{pair[door]}" for pair in doors) for door in (0, 1))
        yield Locked(brokers, files, *addresses)


def config_of(address: str, settings: dict[str, str]) -> ClientConfig:
    servers = tuple((HOST, int(each.rpartition(":")[2])) for each in address.split(","))
    return ClientConfig(bootstrap_servers=servers, tls=read_encryption(settings), login=read_login(settings))


def log_of(locked: Locked, text: str) -> bool:
    return any(text in broker.log_text() for broker in locked.brokers)


def encrypted(locked: Locked, port: int) -> ssl.SSLSocket:
    plain = socket.create_connection((HOST, port), timeout=60)
    return a_client_context(locked.files).wrap_socket(plain, server_hostname=HOST)


def first_byte_from(locked: Locked, port: int) -> bytes:
    with encrypted(locked, port) as connection:
        return connection.recv(1)


@pytest.mark.parametrize("door", ["tls", "certificate", "sasl"])
def test_librdkafka_writes_and_reads(locked: Locked, door: str) -> None:
    more: dict[str, str] = {"security.protocol": "SSL"}
    if door == "certificate":
        more |= {
            "ssl.certificate.location": str(locked.files.alice),
            "ssl.key.location": str(locked.files.alice),
        }
    if door == "sasl":
        more = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
        more |= {"sasl.username": ALICE, "sasl.password": ALICES_PASSWORD}
    address = locked.sasl if door == "sasl" else locked.tls
    config = {"bootstrap.servers": address, "ssl.ca.location": str(locked.files.ca), "log_level": 0, **more}
    errors: list[object] = []
    producer = RdProducer(config)
    for _ in range(20):
        producer.produce(f"rd-{door}", LARGE, on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None] * 20
    consumer = RdConsumer({**config, "group.id": f"rd-{door}", "auto.offset.reset": "earliest"})
    consumer.subscribe([f"rd-{door}"])
    values = []
    while len(values) < 20:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        values.append(message.value())
    consumer.close()
    assert values == [LARGE] * 20


@pytest.mark.parametrize("door", ["tls", "sasl"])
def test_ottlas_own_clients_write_and_read(locked: Locked, door: str) -> None:
    settings = locked.sasl_settings() if door == "sasl" else locked.files.as_alice()
    config = config_of(locked.sasl if door == "sasl" else locked.tls, settings)
    partition = TopicPartition(f"own-{door}", 0)

    async def on_asyncio() -> list[bytes | None]:
        async with AsyncClient(config) as client:
            await client.producer().send_and_wait(partition.topic, LARGE)
            consumer = client.consumer()
            consumer.assign({partition: 0})
            values: list[bytes | None] = []
            while len(values) < 2:
                for records in (await consumer.poll(60_000)).values():
                    values += [record.value for record in records]
            return values

    with Client(config) as client:
        client.run(create_topics, [a_topic(partition.topic, partitions=1)])
        producer = client.producer()
        producer.send(partition.topic, LARGE)
        producer.flush()
        assert asyncio.run(on_asyncio()) == [LARGE, LARGE]
        consumer = client.consumer()
        consumer.assign({partition: 0})
        values: list[bytes | None] = []
        while len(values) < 2:
            for records in consumer.poll(60_000).values():
                values += [record.value for record in records]
    assert values == [LARGE, LARGE]


def test_commands_take_kafkas_settings(locked: Locked, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in locked.sasl_settings().items()))
    to = ("--bootstrap-server", locked.sasl)

    made = run_here("topics", *to, "--command-config", str(file), "--create", "--topic", "by-command")
    written = run_command(
        "console-producer", *to, "--producer.config", str(file), "--topic", "by-command", stdin=b"one\n"
    )
    read = run_here(
        "console-consumer", *to, "--consumer.config", str(file), "--topic", "by-command",
        "--from-beginning", "--max-messages", "1",
    )  # fmt: skip

    assert (made.exit_code, written.exit_code, read.exit_code) == (0, 0, 0), (made, written, read)
    assert read.lines[0] == "one"


def test_a_command_that_does_not_trust_the_broker_says_so(locked: Locked, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")

    ran = run_here(
        "topics",
        "--bootstrap-server",
        locked.tls,
        "--command-config",
        str(tmp_path / "client.properties"),
        "--list",
    )

    assert ran.exit_code != 0
    assert "the other side's certificate is not accepted" in ran.stderr


def test_brokers_show_certificates_to_each_other(locked: Locked) -> None:
    """Records with two replicas are acknowledged, so the brokers read from each other; others may not."""
    inside = int(str(locked.brokers[0].settings()["listeners"]).rpartition(":")[2])
    with pytest.raises(OSError, match="CERTIFICATE_REQUIRED"):
        first_byte_from(locked, inside)
    wait_until(
        lambda: log_of(locked, "the client sent no certificate, and ssl.client.auth=required"),
        "the log says why",
    )


def test_who_speaks_the_other_language_is_named_in_the_log(locked: Locked) -> None:
    broker = locked.brokers[0]
    tls_port = int(locked.tls.split(",")[0].rpartition(":")[2])
    with socket.create_connection((HOST, tls_port), timeout=60) as plain:
        plain.sendall(b"\x00\x00\x00\x14\x00\x12\x00\x00")
        assert plain.recv(100) == b""
    with (
        socket.create_connection((HOST, broker.port), timeout=60) as plain,
        pytest.raises(OSError),
    ):
        a_client_context(locked.files).wrap_socket(plain, server_hostname=HOST)
    for text in ("this listener speaks TLS, the client does not", "the other side speaks TLS and we do not"):
        wait_until(lambda text=text: log_of(locked, text), f"the log says {text}")


def shown_by(locked: Locked, number: int) -> bytes | None:
    """The certificate that a broker shows to clients."""
    with encrypted(locked, int(locked.tls.split(",")[number].rpartition(":")[2])) as connection:
        return connection.getpeercert(binary_form=True)


def test_a_certificate_is_replaced_without_a_restart(locked: Locked) -> None:
    new = authority().issue("broker", (HOST, "localhost"))
    der = ssl.PEM_cert_to_DER_cert(new.certificate)
    assert shown_by(locked, 0) != der
    beside = locked.files.broker.with_suffix(".new")
    beside.write_text(new.both)

    beside.rename(locked.files.broker)

    wait_until(lambda: shown_by(locked, 0) == der, "the new certificate is shown")


def test_another_store_is_named_while_the_broker_runs(locked: Locked) -> None:
    new = authority().issue("broker", (HOST, "localhost"))
    der = ssl.PEM_cert_to_DER_cert(new.certificate)
    other = locked.files.broker.with_name("other.pem")
    other.write_text(new.both)

    altered = run_here(
        "configs", "--bootstrap-server", locked.brokers[1].address, "--alter", "--entity-type", "brokers",
        "--entity-name", "2", "--add-config", f"listener.name.tls.ssl.keystore.location={other}",
    )  # fmt: skip

    assert altered.exit_code == 0, altered
    wait_until(lambda: shown_by(locked, 1) == der, "the other certificate is shown")
    assert shown_by(locked, 0) != der
