"""A broker joins, is killed, paused, refused and asked to leave: real processes, a real ZooKeeper."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.wire.apis.metadata import MetadataRequest
from support.processes.ottla_broker import OttlaBroker
from support.running.waiting import wait_until
from support.wire.client import WireClient
from support.zookeeper.chroots import Chroot

pytestmark = pytest.mark.java

LASTING_MS, BRIEF_MS = 20_000, 2_000
"""Sessions that outlast a machine that stands still, and those whose end is waited for."""


class Ensemble:
    """Brokers of one test, and a view into their ZooKeeper."""

    def __init__(self, zookeeper: Chroot, directory: Path) -> None:
        self.zookeeper = zookeeper
        self.directory = directory
        self.brokers: list[OttlaBroker] = []
        self.kazoo = KazooClient(zookeeper.connect)
        self.kazoo.start(timeout=15)

    def broker(
        self, broker_id: int, name: str = "", port: int | None = None, **settings: object
    ) -> OttlaBroker:
        settings.setdefault("zookeeper_session_timeout_ms", LASTING_MS)
        log_dir = self.directory / (name or f"broker-{broker_id}") / "data"
        broker = OttlaBroker(broker_id, self.zookeeper.connect, port, log_dir, **settings)
        self.brokers.append(broker)
        return broker

    def registered(self, broker_id: int) -> bool:
        return self.kazoo.exists(f"/brokers/ids/{broker_id}") is not None

    def close(self) -> None:
        for broker in self.brokers:
            broker.stop()
        self.kazoo.stop()
        self.kazoo.close()


@pytest.fixture
def ensemble(zookeeper: Chroot, tmp_path: Path) -> Iterator[Ensemble]:
    made = Ensemble(zookeeper, tmp_path)
    yield made
    made.close()


def test_sigterm_leaves_no_trace_in_zookeeper_and_a_clean_log(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1)
    broker.start()
    assert ensemble.registered(1)

    code = broker.shut_down()

    assert code == 0
    assert not ensemble.registered(1)
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()
    assert "Traceback" not in broker.log_text()


def test_a_killed_broker_ends_its_last_session_and_is_back_long_before_it_expires(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, zookeeper_session_timeout_ms=30_000, ottla_guard_enable=False)
    broker.start()
    epoch = ensemble.kazoo.exists("/brokers/ids/1").czxid
    broker.kill()
    assert ensemble.registered(1)

    broker.start()

    assert ensemble.kazoo.exists("/brokers/ids/1").czxid > epoch
    assert broker.log_text().count("waiting for the end of the last session") == 1
    assert "the last session of this broker is ended" in broker.log_text()


def test_a_killed_broker_whose_note_is_lost_waits_for_the_end_of_its_session(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, zookeeper_session_timeout_ms=BRIEF_MS, ottla_guard_enable=False)
    broker.start()
    epoch = ensemble.kazoo.exists("/brokers/ids/1").czxid
    broker.kill()
    (broker.log_dir / "ottla-zookeeper-session").unlink()

    broker.start()

    assert ensemble.kazoo.exists("/brokers/ids/1").czxid > epoch
    assert "the last session of this broker is ended" not in broker.log_text()


def test_a_broker_that_was_silent_too_long_comes_back_under_a_new_epoch(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, zookeeper_session_timeout_ms=BRIEF_MS)
    broker.start()
    epoch = ensemble.kazoo.exists("/brokers/ids/1").czxid
    broker.pause()
    wait_until(lambda: not ensemble.registered(1), "the session expires", 20)

    broker.resume()

    wait_until(lambda: ensemble.registered(1), "the broker registers again", 20)
    assert ensemble.kazoo.exists("/brokers/ids/1").czxid > epoch
    with WireClient(broker.address) as client:
        wait_until(
            lambda: [row.node_id for row in client.ask(MetadataRequest(topics=None), 12).brokers] == [1],
            "the broker serves",
            20,
        )


def test_a_second_process_with_the_same_id_is_refused_by_name(ensemble: Ensemble) -> None:
    first = ensemble.broker(1)
    first.start()
    second = ensemble.broker(1, name="impostor")

    second.launch()

    assert second.exit_code() == 1
    assert f"broker 1 is already running at 127.0.0.1:{first.port}" in second.log_text()
    assert ensemble.registered(1)


def test_a_second_broker_with_the_same_advertised_address_is_refused(ensemble: Ensemble) -> None:
    first = ensemble.broker(1)
    first.start()
    second = ensemble.broker(2, advertised_listeners=f"PLAINTEXT://{first.address}")

    second.launch()

    assert second.exit_code() == 1
    assert "is already the address of broker 1" in second.log_text()


def test_two_processes_cannot_share_a_log_directory(ensemble: Ensemble) -> None:
    first = ensemble.broker(1, name="shared")
    first.start()
    second = ensemble.broker(2, name="shared")

    second.launch()

    assert second.exit_code() == 1
    assert "another process uses the log directory" in second.log_text()


def test_a_port_that_is_taken_is_named_before_anything_is_promised(ensemble: Ensemble) -> None:
    first = ensemble.broker(1)
    first.start()
    second = ensemble.broker(2, port=first.port)

    second.launch()

    assert second.exit_code() == 1
    assert f"cannot listen on PLAINTEXT://{first.address}" in second.log_text()
    assert not ensemble.registered(2)


def test_without_zookeeper_the_start_is_refused_with_words(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, zookeeper_connect="127.0.0.1:1", zookeeper_connection_timeout_ms=500)

    broker.launch()

    assert broker.exit_code() == 1
    assert "check that it runs and that zookeeper.connect names it" in broker.log_text()


def test_sigterm_while_zookeeper_is_away_ends_the_process(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, zookeeper_connect="127.0.0.1:1", zookeeper_connection_timeout_ms=60_000)
    broker.launch()
    wait_until(lambda: "connecting to zookeeper" in broker.log_text(), "the process has begun", 20)

    assert broker.shut_down() == 0


def test_port_0_and_several_listeners_are_registered_with_their_real_ports(ensemble: Ensemble) -> None:
    broker = ensemble.broker(
        7,
        listeners="INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    )
    broker.launch()
    wait_until(lambda: "listening broker=7" in broker.log_text(), "the broker lets clients in", 30)

    registration = json.loads(ensemble.kazoo.get("/brokers/ids/7")[0])
    addresses = dict(endpoint.split("://") for endpoint in registration["endpoints"])
    assert set(addresses) == {"INSIDE", "OUTSIDE"}
    for address in addresses.values():
        with WireClient(address) as client:
            wait_until(
                lambda client=client, address=address: (
                    [f"{row.host}:{row.port}" for row in client.ask(MetadataRequest(topics=None), 12).brokers]
                    == [address]
                ),
                "each listener shows its own address",
                20,
            )


def test_an_advertised_address_that_cannot_be_reached_is_one_warning(ensemble: Ensemble) -> None:
    broker = ensemble.broker(1, advertised_listeners="PLAINTEXT://127.0.0.1:1")
    broker.launch()

    wait_until(lambda: "cannot be reached from this machine" in broker.log_text(), "a warning", 30)


def test_a_broker_without_an_id_gets_one_and_keeps_it(ensemble: Ensemble) -> None:
    broker = ensemble.broker(-1)
    broker.launch()
    wait_until(lambda: "started broker=1001" in broker.log_text(), "the broker has started", 30)
    broker.shut_down()

    broker.launch()

    wait_until(lambda: broker.log_text().count("started broker=1001") == 2, "the same id again", 30)


@pytest.mark.parametrize("flag", ["-O", "-OO"])
def test_a_broker_without_assertions_is_refused(flag: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=127.0.0.1:1\n")

    done = subprocess.run(
        [sys.executable, flag, "-m", "ottla.server", str(file)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "does not run under python -O" in done.stderr
