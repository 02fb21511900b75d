"""Changes of a broker's settings: which are taken while it runs, and what is kept secret."""

import json

import pytest

from ottla.model.errors import ErrorCode
from ottla.znodes import paths
from ottla.znodes.codec_config import encode_config_change
from ottla.zookeeper.ops import ANY_VERSION, Create, Failed, SetData
from support.bench.node_bench import Bench
from unit.broker.settings.test_settings_apis import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    a_bench_with_a_topic,
    describe,
    edit,
    stored,
)

UNKNOWN, STRING, LONG, PASSWORD = 0, 2, 5, 9


def store(bench: Bench, entity: str, **settings: str) -> None:
    """Somebody writes a broker's settings with a tool of his own."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    node = json.dumps({"version": 1, "config": config}).encode()
    if isinstance(bench.zk(Create(f"/config/brokers/{entity}", node)), Failed):
        bench.zk(SetData(f"/config/brokers/{entity}", node, ANY_VERSION))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(f"brokers/{entity}"), sequential=True))


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("log.retention.ms", "0"),
        ("log.roll.ms", "0"),
        ("log.roll.ms", "-5"),
        ("log.roll.jitter.ms", "-1"),
        ("log.flush.interval.ms", "-1"),
        ("log.cleaner.threads", "0"),
        ("log.cleaner.threads", "3"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("num.replica.fetchers", "0"),
        ("num.replica.fetchers", "1000000"),
        ("num.io.threads", "3"),
        ("num.io.threads", "17"),
        ("num.network.threads", "7"),
        ("background.threads", "4"),
        ("num.recovery.threads.per.data.dir", "3"),
        ("max.connections", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "no host:3"),
    ],
)
def test_a_value_that_a_broker_cannot_run_with_is_refused(name: str, setting: str, value: str) -> None:
    bench = a_bench_with_a_topic()

    code, message = edit(bench, BROKER, name, (setting, SET, value))

    assert code == ErrorCode.INVALID_REQUEST
    assert setting.rpartition(".")[0] in (message or "")
    assert f"/config/brokers/{name or '<default>'}" not in bench.tree.nodes


def test_threads_change_step_by_step() -> None:
    bench = a_bench_with_a_topic()
    fetchers = "num.replica.fetchers"

    for count in ("2", "4", "3", "6"):
        assert edit(bench, BROKER, "1", (fetchers, SET, count)) == (ErrorCode.NONE, None)

    assert bench.node.config.replication.num_replica_fetchers == 6
    assert edit(bench, BROKER, "1", (fetchers, DELETE, None))[0] == ErrorCode.INVALID_REQUEST
    assert edit(bench, BROKER, "", (fetchers, SET, "1000")) == (ErrorCode.NONE, None)
    assert bench.node.config.replication.num_replica_fetchers == 6


def test_a_value_is_judged_beside_those_that_it_will_stand_with() -> None:
    bench = a_bench_with_a_topic(max_connections_per_ip_overrides="127.0.0.1:5")
    assert edit(bench, BROKER, "", ("max.connections.per.ip", SET, "0")) == (ErrorCode.NONE, None)

    code, _ = edit(bench, BROKER, "1", ("max.connections.per.ip.overrides", SET, ""))

    assert code == ErrorCode.INVALID_REQUEST


def test_what_others_have_stored_and_no_broker_can_run_with_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = a_bench_with_a_topic(log_roll_ms=5_000)

    store(bench, "1", log_roll_ms="0", log_retention_ms="77")

    assert bench.node.config.log.segment_ms == 5_000
    assert bench.node.config.log.retention_ms != 77
    assert "cannot be applied" in caplog.text
    assert edit(bench, BROKER, "1", ("log.roll.ms", SET, "6000")) == (ErrorCode.NONE, None)
    assert stored(bench, "brokers/1") == {"log.roll.ms": "6000", "log.retention.ms": "77"}
    assert bench.node.config.log.retention_ms == 77


@pytest.mark.parametrize("entity", ["1", "<default>"])
def test_of_a_setting_that_somebody_spoilt_what_held_before_holds_on(
    entity: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the default in its place the broker could delete what it was told to keep."""
    bench = a_bench_with_a_topic()
    store(bench, entity, log_retention_ms="-1")
    assert bench.node.config.log.retention_ms == -1

    store(bench, entity, log_retention_ms="ever", log_roll_ms="5000")

    assert (bench.node.config.log.retention_ms, bench.node.config.log.segment_ms) == (-1, 5_000)
    assert "setting=log.retention.ms" in caplog.text
    store(bench, entity, log_retention_ms="7")
    assert bench.node.config.log.retention_ms == 7


@pytest.mark.parametrize(
    ("name", "setting", "code"),
    [
        ("1", "ssl.keystore.password", ErrorCode.INVALID_REQUEST),
        ("1", "ssl.keystore.location", ErrorCode.INVALID_REQUEST),
        ("", "ssl.keystore.password", ErrorCode.INVALID_REQUEST),
        ("1", "password.encoder.secret", ErrorCode.INVALID_REQUEST),
        ("1", "listener.name.inside.ssl.keystore.password", ErrorCode.INVALID_CONFIG),
        ("1", "listener.name.inside.plain.sasl.jaas.config", ErrorCode.INVALID_CONFIG),
        ("1", "sasl.jaas.config", ErrorCode.INVALID_CONFIG),
        ("1", "my.own.ssl.key.password", ErrorCode.INVALID_CONFIG),
        ("", "my.own.ssl.key.password", ErrorCode.INVALID_CONFIG),
        ("", "listener.name.inside.ssl.keystore.location", ErrorCode.INVALID_REQUEST),
        ("", "listener.name.inside.anything", ErrorCode.INVALID_REQUEST),
        ("1", "listener.name.inside.max.connections", ErrorCode.INVALID_REQUEST),
    ],
)
def test_passwords_and_what_belongs_to_one_listener_are_not_stored_for_all_to_read(
    name: str, setting: str, code: ErrorCode
) -> None:
    bench = a_bench_with_a_topic()

    answered, message = edit(bench, BROKER, name, (setting, SET, "secret"))

    assert answered == code, message
    assert f"/config/brokers/{name or '<default>'}" not in bench.tree.nodes


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("1", "listener.name.inside.ssl.keystore.location", "/a"),
        ("", "listener.name.inside.max.connections", "5"),
        ("1", "my.own", "x"),
        ("", "my.own", "x"),
    ],
)
def test_what_is_no_secret_is_stored(name: str, setting: str, value: str) -> None:
    bench = a_bench_with_a_topic()

    assert edit(bench, BROKER, name, (setting, SET, value)) == (ErrorCode.NONE, None)

    assert stored(bench, f"brokers/{name or '<default>'}") == {setting: value}


def test_a_password_that_a_broker_of_apaches_has_stored_stays_with_the_rest() -> None:
    bench = a_bench_with_a_topic()
    store(bench, "1", sasl_jaas_config="encoded")

    assert edit(bench, BROKER, "1", ("log.retention.ms", SET, "7")) == (ErrorCode.NONE, None)

    assert stored(bench, "brokers/1") == {"sasl.jaas.config": "encoded", "log.retention.ms": "7"}


def test_names_that_nobody_knows_are_shown_without_their_values() -> None:
    bench = a_bench_with_a_topic(my_secret="in the file")
    edit(bench, BROKER, "1", ("our.secret", SET, "for one"))
    edit(bench, BROKER, "", ("all.secrets", SET, "for all"))
    bench.zk(Create("/config/topics/orders", b'{"version":1,"config":{"its.secret":"x","flush.ms":"5"}}'))

    own, default, topic = (
        describe(bench, BROKER, "1"),
        describe(bench, BROKER, ""),
        describe(bench, TOPIC, "orders"),
    )

    for row, source, is_read_only in (
        (own["my.secret"], 4, True),
        (own["our.secret"], 2, True),
        (own["all.secrets"], 3, True),
        (default["all.secrets"], 3, True),
        (topic["its.secret"], 1, False),
    ):
        assert row.value is None
        assert row.is_sensitive
        assert (row.config_type, row.config_source, row.read_only) == (UNKNOWN, source, is_read_only)
        assert [(each.name, each.value, each.source) for each in row.synonyms] == [(row.name, None, source)]
        assert row.documentation is None
    assert list(default) == ["all.secrets"]
    assert (topic["flush.ms"].value, topic["flush.ms"].is_sensitive) == ("5", False)


def test_settings_of_one_listener_are_shown_like_those_of_all() -> None:
    bench = a_bench_with_a_topic()
    store(
        bench,
        "1",
        **{
            "listener.name.inside.ssl.keystore.location": "/a",
            "listener.name.inside.ssl.keystore.password": "encoded",
            "listener.name.inside.plain.sasl.jaas.config": "encoded",
            "leader.replication.throttled.rate": "5",
        },
    )

    rows = describe(bench, BROKER, "1")

    location = rows["listener.name.inside.ssl.keystore.location"]
    assert (location.value, location.config_type, location.read_only) == ("/a", STRING, True)
    for name in ("ssl.keystore.password", "plain.sasl.jaas.config"):
        row = rows[f"listener.name.inside.{name}"]
        assert (row.value, row.config_type, row.is_sensitive) == (None, PASSWORD, True)
    rate = rows["leader.replication.throttled.rate"]
    assert (rate.value, rate.config_type, rate.read_only) == ("5", LONG, True)


def test_settings_of_all_brokers_say_whether_they_can_be_changed() -> None:
    bench = a_bench_with_a_topic()
    store(bench, "<default>", log_retention_ms="7", num_partitions="3")

    rows = describe(bench, BROKER, "")

    assert {name: row.read_only for name, row in rows.items()} == {
        "log.retention.ms": False,
        "num.partitions": True,
    }
