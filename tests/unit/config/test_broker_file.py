"""``server.properties``: everything that is wrong is named at once, everything right arrives in its area."""

import pytest

from ottla.config.areas import BrokerConfig
from ottla.config.broker_file import BrokerFile, effective_values, read_broker_file, with_values
from ottla.config.definitions import broker_settings, topic_settings, topic_synonyms
from ottla.config.log import LogConfig
from ottla.model.cluster import Endpoint

SOUND = {"zookeeper.connect": "zk:2181", "broker.id": "3", "listeners": "PLAINTEXT://here:9092"}


def read(**settings: str) -> BrokerFile:
    return read_broker_file({**SOUND, **{name.replace("_", "."): text for name, text in settings.items()}})


def config_of(**settings: str) -> BrokerConfig:
    file = read(**settings)
    assert file.config is not None, file.problems
    return file.config


def test_every_problem_of_a_file_is_named_at_once() -> None:
    file = read(
        num_partitions="none",
        log_segment_bytes="3",
        listeners="SSL://:9093",
        authorizer_class_name="acme.Authorizer",
        inter_broker_protocol_version="3.4",
    )

    named = [problem.split("=")[0].split(":")[0] for problem in file.problems]
    assert file.config is None
    assert set(named) >= {
        "num.partitions",
        "log.segment.bytes",
        "listeners",
        "authorizer.class.name",
        "inter.broker.protocol.version",
    }


def test_unknown_names_do_not_hinder_the_start_but_are_listed() -> None:
    file = read(no_such_setting="1", another_one="2")

    assert file.config is not None
    assert file.unknown == ["another.one", "no.such.setting"]


def test_settings_of_parts_that_ottla_lacks_are_listed_when_they_differ_from_the_default() -> None:
    file = read(num_io_threads="99", num_network_threads="3")

    assert file.without_effect == ["num.io.threads"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("zookeeper.set.acl", "true"),
        ("zookeeper.ssl.client.enable", "true"),
        ("zookeeper.metadata.migration.enable", "true"),
        ("process.roles", "broker"),
        ("remote.log.storage.system.enable", "true"),
        ("create.topic.policy.class.name", "acme.Policy"),
        ("client.quota.callback.class", "acme.Quotas"),
        ("max.connection.creation.rate", "5"),
        ("replica.selector.class", "acme.Selector"),
        ("inter.broker.protocol.version", "2.8"),
    ],
)
def test_a_setting_that_promises_what_ottla_does_not_do_refuses_the_start_by_name(
    name: str, text: str
) -> None:
    file = read_broker_file({**SOUND, name: text})

    assert file.config is None
    assert any(name in problem for problem in file.problems)


@pytest.mark.parametrize("version", ["3.9", "3.9-IV0"])
def test_the_one_protocol_version_is_accepted(version: str) -> None:
    assert read(inter_broker_protocol_version=version).config is not None


def test_a_broker_without_zookeeper_is_refused() -> None:
    file = read_broker_file({"broker.id": "1"})

    assert [problem for problem in file.problems if problem.startswith("zookeeper.connect")]


def test_each_area_gets_its_settings() -> None:
    config = config_of(
        replica_lag_time_max_ms="12345",
        num_partitions="7",
        connections_max_idle_ms="999",
        offsets_topic_num_partitions="3",
        transaction_state_log_num_partitions="44",
        log_dirs="/one, /two",
        auto_leader_rebalance_enable="FALSE",
        controlled_shutdown_max_retries="1",
        broker_rack="r1",
    )

    assert config.replication.replica_lag_time_max_ms == 12345
    assert config.topics.num_partitions == 7
    assert config.connections.connections_max_idle_ms == 999
    assert config.groups.offsets_topic_num_partitions == 3
    assert config.transactions.transaction_state_log_num_partitions == 44
    assert config.log_management.log_dirs == ("/one", "/two")
    assert config.controller.auto_leader_rebalance_enable is False
    assert config.shutdown.controlled_shutdown_max_retries == 1
    assert config.broker_rack == "r1"


def test_the_areas_defaults_are_those_of_the_tables() -> None:
    file = read_broker_file({"zookeeper.connect": "localhost:2181"})

    assert file.config is not None
    plain = BrokerConfig(listeners=file.config.listeners, originals=file.config.originals)
    assert file.config == plain


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "1"}, 3_600_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 120_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2", "log_retention_ms": "3"}, 3),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_ms": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_counts(settings: dict[str, str], retention_ms: int) -> None:
    assert config_of(**settings).log.retention_ms == retention_ms


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"broker.id": "1001"}, "reserved.broker.max.id"),
        ({"broker.id": "-5"}, "broker.id"),
        ({"broker.id": "-1", "broker.id.generation.enable": "false"}, "broker.id.generation.enable"),
        ({"broker.id": "1", "node.id": "2"}, "node.id"),
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.lag.time.max.ms"),
        ({"max.connections.per.ip.overrides": "host"}, "max.connections.per.ip.overrides"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "twice"),
        ({"listeners": "PLAINTEXT://a:9092,OTHER://a:9093"}, "OTHER"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "0.0.0.0"),
        (
            {
                "advertised.listeners": "ELSE://a:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ELSE:PLAINTEXT",
            },
            "ELSE",
        ),
        ({"inter.broker.listener.name": "NONE"}, "NONE"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "control.plane.listener.name"),
        ({"listeners": "PLAINTEXT://a"}, "NAME://host:port"),
        ({"listeners": ""}, "listener"),
        ({"auto.create.topics.enable": "yes"}, "either true or false"),
        ({"num.partitions": "1_0"}, "Not a number of type INT"),
        ({"log.segment.bytes": "99999999999"}, "Not a number of type INT"),
        ({"log.cleaner.min.cleanable.ratio": "2"}, "no more than 1"),
        ({"compression.type": "brotli"}, "must be one of"),
        ({"compression.gzip.level": "0"}, "or equal to -1"),
        ({"log.message.format.version": "banana"}, "banana is not a valid version"),
        ({"offsets.topic.compression.codec": "5"}, "offsets.topic.compression.codec"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"log.roll.ms": "-5"}, "log.roll.ms"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.retention.minutes": "0"}, "log.retention.ms"),
        ({"log.retention.hours": "0"}, "log.retention.ms"),
        ({"log.flush.interval.ms": "-1"}, "log.flush.interval.ms"),
        ({"log.flush.scheduler.interval.ms": "-1"}, "log.flush.interval.ms"),
        ({"log.dirs": " , "}, "At least one log directory"),
        ({"log.dirs": ""}, "At least one log directory"),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads"),
        ({"log.cleaner.threads": "128"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        (
            {"log.cleaner.min.compaction.lag.ms": "3", "log.cleaner.max.compaction.lag.ms": "2"},
            "log.cleaner.max.compaction.lag.ms",
        ),
        ({"num.replica.fetchers": "0"}, "num.replica.fetchers"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip.overrides"),
        ({"max.connections.per.ip.overrides": "a b:3"}, "invalid addresses : a b"),
        ({"connections.max.idle.ms": "100"}, "connections.max.idle.ms"),
        ({"queued.max.request.bytes": "1000"}, "socket.request.max.bytes"),
        ({"offsets.commit.required.acks": "4"}, "offsets.topic.replication.factor"),
        ({"offsets.commit.required.acks": "-2"}, "offsets.commit.required.acks"),
    ],
)
def test_settings_that_contradict_are_refused_with_words(settings: dict[str, str], words: str) -> None:
    file = read_broker_file({**SOUND, **settings})

    assert file.config is None
    assert any(words in problem for problem in file.problems), file.problems


@pytest.mark.parametrize(
    "settings",
    [
        {"log.retention.ms": "-1"},
        {"log.retention.hours": "-7"},
        {"log.roll.ms": "1", "log.roll.jitter.ms": "0"},
        {"log.cleaner.threads": "127"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:1"},
        {"connections.max.idle.ms": "-1"},
        {"offsets.commit.required.acks": "3"},
        {"num.replica.fetchers": "1000"},
    ],
)
def test_settings_at_the_edge_of_what_is_sound_are_taken(settings: dict[str, str]) -> None:
    assert read_broker_file({**SOUND, **settings}).problems == []


def test_several_listeners_are_told_apart_by_name() -> None:
    config = config_of(
        listeners="INSIDE://:9091,OUTSIDE://0.0.0.0:9092,CONTROL://[::1]:9093",
        advertised_listeners="INSIDE://in.example:9091,OUTSIDE://out.example:19092,CONTROL://[::1]:9093",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROL:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
        control_plane_listener_name="CONTROL",
    )

    assert config.listeners.listeners[2] == Endpoint("CONTROL", "::1", 9093)
    assert config.listeners.advertised_listeners[1] == Endpoint("OUTSIDE", "out.example", 19092)
    assert config.listeners.inter_broker_listener_name == "INSIDE"
    assert config.listeners.control_plane_listener_name == "CONTROL"


def test_a_listener_on_every_address_advertises_the_hosts_name() -> None:
    file = read_broker_file({**SOUND, "listeners": "PLAINTEXT://:9092"}, host_name=lambda: "me.example")

    assert file.config is not None
    assert file.config.listeners.advertised_listeners == (Endpoint("PLAINTEXT", "me.example", 9092),)


def test_nobody_asks_a_name_server_where_every_listener_has_its_address() -> None:
    def ask() -> str:
        raise AssertionError("a name server that does not answer would hold up the start")

    file = read_broker_file({**SOUND, "listeners": "PLAINTEXT://127.0.0.1:9092"}, host_name=ask)

    assert file.config is not None


def test_dynamic_settings_lie_over_the_file_layer_by_layer() -> None:
    config = config_of(log_retention_ms="1000", num_partitions="2")

    values = effective_values(
        config.originals,
        {"log.retention.ms": "2000", "log.segment.bytes": "100", "num.partitions": "9"},
        {"log.retention.ms": "3000", "leader.replication.throttled.rate": "77", "log.preallocate": "maybe"},
    )
    changed = with_values(config, values)

    assert changed.log.retention_ms == 3000
    assert changed.log.segment_bytes == 100
    assert changed.replication.leader_replication_throttled_rate == 77
    assert changed.topics.num_partitions == 2, "read-only settings do not change while the broker runs"
    assert values["log.preallocate"] is False, "what does not parse is left alone"
    assert with_values(changed, effective_values(changed.originals)) == config


def test_every_topic_setting_stands_on_broker_settings_that_exist() -> None:
    for name, synonyms in topic_synonyms().items():
        assert name in topic_settings()
        assert set(synonyms) <= set(broker_settings())


def test_log_defaults_of_the_tables_are_those_of_the_class() -> None:
    assert config_of().log == LogConfig()
