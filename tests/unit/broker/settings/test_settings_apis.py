"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, and how the news of a change travels."""

import json

import pytest

from ottla.config.definitions import topic_settings
from ottla.model.errors import ErrorCode
from ottla.wire.apis import alter_configs, incremental_alter_configs
from ottla.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from ottla.wire.apis.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.headers import decode_response
from ottla.znodes import paths
from ottla.znodes.codec_config import encode_config_change
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, Multi, SetData
from support.bench.controller_bench import ControllerBench
from support.bench.node_bench import Bench, a_config

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def a_bench_with_a_topic(**settings: object) -> Bench:
    bench = Bench(a_config(**settings)).start()
    state = UpdateMetadataPartitionState(leader=1, replicas=(1,), isr=(1,))
    topic = UpdateMetadataTopicState(topic_name="orders", topic_id=b"i" * 16, partition_states=[state])
    bench.ask(UpdateMetadataRequest(controller_id=1, controller_epoch=9, topic_states=[topic]), 8)
    return bench


def describe(bench: Bench, kind: int, name: str, *keys: str) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    answer = bench.ask(
        DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True), 4
    )
    assert answer.results[0].error_code == ErrorCode.NONE, answer.results[0].error_message
    return {row.name: row for row in answer.results[0].configs}


def edit(bench: Bench, kind: int, name: str, *rows: tuple[str, int, str | None]) -> tuple[int, str | None]:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in rows
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    row = bench.ask(request, 1).responses[0]
    return row.error_code, row.error_message


def stored(bench: Bench, entity: str) -> dict[str, str]:
    node = bench.tree.nodes[f"/config/{entity}"]
    overrides: dict[str, str] = json.loads(node.data or b"")["config"]
    return overrides


def test_a_topics_settings_come_with_source_synonyms_and_meaning() -> None:
    bench = a_bench_with_a_topic(log_retention_hours=1)
    edit(bench, TOPIC, "orders", ("cleanup.policy", SET, "compact"))

    rows = describe(bench, TOPIC, "orders")

    policy = rows["cleanup.policy"]
    assert (policy.value, policy.config_source, policy.read_only) == ("compact", 1, False)
    assert [(s.name, s.value, s.source) for s in policy.synonyms] == [
        ("cleanup.policy", "compact", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    assert rows["retention.ms"].value == "3600000"
    assert all(row.documentation for row in rows.values())
    assert rows.keys() == topic_settings().keys()


def test_a_brokers_settings_show_file_dynamic_default_and_own() -> None:
    bench = a_bench_with_a_topic(num_partitions=3)
    edit(bench, BROKER, "", ("log.cleaner.threads", SET, "2"))
    edit(bench, BROKER, "1", ("log.cleaner.threads", SET, "4"))

    rows = describe(bench, BROKER, "1")

    assert (rows["num.partitions"].value, rows["num.partitions"].config_source) == ("3", 4)
    assert rows["num.partitions"].read_only
    threads = rows["log.cleaner.threads"]
    assert [(s.value, s.source) for s in threads.synonyms] == [("4", 2), ("2", 3), ("1", 5)]
    assert threads.value == "4"
    assert rows["broker.id"].value == rows["node.id"].value == "1"
    assert describe(bench, BROKER, "")["log.cleaner.threads"].value == "2"


def test_passwords_are_never_shown() -> None:
    bench = a_bench_with_a_topic(ssl_keystore_password="secret")

    row = describe(bench, BROKER, "1", "ssl.keystore.password")["ssl.keystore.password"]

    assert row.value is None
    assert row.is_sensitive
    assert all(synonym.value is None for synonym in row.synonyms)


def test_a_change_is_written_with_its_note_and_takes_effect() -> None:
    bench = a_bench_with_a_topic()

    code, _ = edit(bench, TOPIC, "orders", ("retention.ms", SET, "77"))

    assert code == ErrorCode.NONE
    assert stored(bench, "topics/orders") == {"retention.ms": "77"}
    note = bench.tree.nodes["/config/changes/config_change_0000000000"]
    assert json.loads(note.data or b"") == {"version": 2, "entity_path": "topics/orders"}
    assert bench.node.configs.log_config("orders").retention_ms == 77


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact", "flush.ms": "5"}),
        ([("cleanup.policy", SUBTRACT, "delete")], {"cleanup.policy": "", "flush.ms": "5"}),
        ([("flush.ms", DELETE, None)], {}),
        ([("flush.ms", SET, "6"), ("preallocate", SET, "true")], {"flush.ms": "6", "preallocate": "true"}),
    ],
)
def test_operations_edit_what_is_there(
    rows: list[tuple[str, int, str | None]], expected: dict[str, str]
) -> None:
    bench = a_bench_with_a_topic()
    edit(bench, TOPIC, "orders", ("flush.ms", SET, "5"))

    edit(bench, TOPIC, "orders", *rows)

    assert stored(bench, "topics/orders") == expected


def test_alter_configs_replaces_everything_and_validation_alone_writes_nothing() -> None:
    bench = a_bench_with_a_topic()
    edit(bench, TOPIC, "orders", ("flush.ms", SET, "5"))
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="orders",
        configs=[alter_configs.AlterableConfig(name="retention.ms", value="9")],
    )

    bench.ask(alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True), 2)
    assert stored(bench, "topics/orders") == {"flush.ms": "5"}
    bench.ask(alter_configs.AlterConfigsRequest(resources=[resource]), 2)

    assert stored(bench, "topics/orders") == {"retention.ms": "9"}


@pytest.mark.parametrize(
    ("kind", "name", "row", "code"),
    [
        (TOPIC, "nowhere", ("flush.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "orders", ("no.such", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("flush.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("flush.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", ("remote.storage.enable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("remote.log.copy.disable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("remote.log.delete.on.disable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("message.format.version", SET, "banana"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("compression.gzip.level", SET, "0"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("flush.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", ("flush.ms", 9, "1"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (BROKER, "2", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("num.partitions", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", SET, "x"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("listeners", SET, "PLAINTEXT://a:1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("advertised.listeners", SET, "PLAINTEXT://a:1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("max.connection.creation.rate", SET, "5"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("max.connections.per.ip.overrides", SET, "garbage"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("max.connections.per.ip.overrides", SET, "5"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ("log.retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, " 1 ", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1_0", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "4294967297", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "9" * 5_000, ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "nowhere", ("flush.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (99, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_that_is_not_sound_is_refused_and_not_written(
    kind: int, name: str, row: tuple[str, int, str | None], code: ErrorCode
) -> None:
    bench = a_bench_with_a_topic()
    before = dict(bench.tree.nodes)

    answered, _ = edit(bench, kind, name, row)

    assert answered == code
    assert set(bench.tree.nodes) == set(before)


@pytest.mark.parametrize("operations", [(SET, SET), (SET, DELETE), None])
def test_a_setting_named_twice_is_refused_by_both_apis(operations: tuple[int, int] | None) -> None:
    bench = a_bench_with_a_topic()
    if operations is not None:
        first, second = operations
        code, _ = edit(bench, TOPIC, "orders", ("flush.ms", first, "1"), ("flush.ms", second, "2"))
    else:
        rows = [alter_configs.AlterableConfig(name="flush.ms", value=value) for value in ("1", "2")]
        resource = alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name="orders", configs=rows
        )
        code = bench.ask(alter_configs.AlterConfigsRequest(resources=[resource]), 2).responses[0].error_code

    assert code == ErrorCode.INVALID_REQUEST
    assert "/config/topics/orders" not in bench.tree.nodes


@pytest.mark.parametrize("name", ["1", "01", "+1", "+0001"])
def test_a_brokers_number_is_one_however_it_is_written(name: str) -> None:
    bench = a_bench_with_a_topic()

    assert edit(bench, BROKER, name, ("log.retention.ms", SET, "7")) == (ErrorCode.NONE, None)

    assert stored(bench, "brokers/1") == {"log.retention.ms": "7"}
    assert bench.node.config.log.retention_ms == 7
    assert describe(bench, BROKER, name, "log.retention.ms")["log.retention.ms"].value == "7"


def test_compaction_lags_must_agree_with_each_other_and_with_the_brokers() -> None:
    bench = a_bench_with_a_topic(log_cleaner_max_compaction_lag_ms=50_000)
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"

    assert edit(bench, TOPIC, "orders", (low, SET, "60000")) == (
        ErrorCode.INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (60000) > max.compaction.lag.ms (50000)",
    )
    assert edit(bench, TOPIC, "orders", (low, SET, "60000"), (high, SET, "60000")) == (0, None)
    assert edit(bench, TOPIC, "orders", (high, SET, "1")) == (
        ErrorCode.INVALID_CONFIG,
        "conflict topic config setting min.compaction.lag.ms (60000) > max.compaction.lag.ms (1)",
    )
    assert stored(bench, "topics/orders") == {low: "60000", high: "60000"}


@pytest.mark.parametrize(
    ("kind", "name", "theirs", "new"),
    [
        (BROKER, "1", ("listeners", "PLAINTEXT://a:1"), ("log.retention.ms", "7")),
        (BROKER, "", ("max.connection.creation.rate", "5"), ("log.retention.ms", "7")),
        (BROKER, "", ("num.partitions", "5"), ("log.retention.ms", "7")),
        (BROKER, "", ("advertised.listeners", "PLAINTEXT://a:1"), ("log.retention.ms", "7")),
        (TOPIC, "orders", ("remote.storage.enable", "true"), ("retention.ms", "7")),
    ],
)
def test_what_others_have_stored_keeps_nobody_from_changing_the_rest(
    kind: int, name: str, theirs: tuple[str, str], new: tuple[str, str]
) -> None:
    bench = a_bench_with_a_topic()
    entity = f"topics/{name}" if kind == TOPIC else f"brokers/{name or '<default>'}"
    node = json.dumps({"version": 1, "config": dict([theirs])}).encode()
    bench.zk(Create(f"/config/{entity}", node))

    assert edit(bench, kind, name, (new[0], SET, new[1])) == (ErrorCode.NONE, None)
    assert stored(bench, entity) == dict([theirs, new])

    code, _ = edit(bench, kind, name, (theirs[0], SET, "OTHER://b:2" if "://" in theirs[1] else "6"))
    assert code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)
    assert edit(bench, kind, name, (theirs[0], DELETE, None)) == (ErrorCode.NONE, None)
    assert stored(bench, entity) == dict([new])


def test_without_a_controller_nothing_is_written() -> None:
    bench = a_bench_with_a_topic()
    bench.zk_is_held = True
    bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))
    bench.held.clear()
    bench.zk_is_held = False

    code, message = edit(bench, TOPIC, "orders", ("flush.ms", SET, "1"))

    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert message == "There is no controller."
    assert "/config/topics/orders" not in bench.tree.nodes


def test_changes_made_by_others_are_followed_through_their_notes() -> None:
    bench = a_bench_with_a_topic()
    bench.zk(Create("/config/topics/orders", b'{"version":1,"config":{"max.message.bytes":"5"}}'))
    assert bench.node.configs.log_config("orders").max_message_bytes != 5

    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("topics/orders"), sequential=True))
    assert bench.node.configs.log_config("orders").max_message_bytes == 5

    bench.zk(Create("/config/brokers/1", b'{"version":1,"config":{"log.retention.ms":"8"}}'))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("brokers/1"), sequential=True))
    assert bench.node.config.log.retention_ms == 8
    assert bench.node.configs.log_config("orders").retention_ms == 8


def test_limits_of_addresses_that_cannot_be_read_are_passed_over_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever stored them with a tool of his own must not lock everybody out."""
    bench = a_bench_with_a_topic(max_connections_per_ip_overrides="10.0.0.7:3")

    stored_by_hand = b'{"version":1,"config":{"max.connections.per.ip.overrides":"garbage"}}'
    bench.zk(Create("/config/brokers/<default>", stored_by_hand))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("brokers/<default>"), sequential=True))

    assert bench.node.config.connections.max_connections_by_ip == {"10.0.0.7": 3}
    assert "setting=max.connections.per.ip.overrides" in caplog.text


def test_notes_that_cannot_be_read_and_entities_of_others_are_passed_over() -> None:
    bench = a_bench_with_a_topic()

    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, b"rubbish", sequential=True))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("users/alice"), sequential=True))
    bench.zk(Create("/config/topics/orders", b'{"version":1,"config":{"flush.ms":"5"}}'))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("topics/orders"), sequential=True))

    assert bench.node.configs.log_config("orders").flush_ms == 5


def test_old_notes_are_removed_and_young_ones_kept() -> None:
    bench = a_bench_with_a_topic()
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("topics/orders"), sequential=True))

    bench.clock.now_ms += 16 * 60 * 1000
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("topics/orders"), sequential=True))

    notes = [path for path in bench.tree.nodes if path.startswith(paths.CONFIG_CHANGE_PREFIX)]
    assert notes == ["/config/changes/config_change_0000000001"]


def test_settings_that_were_there_before_the_start_hold_from_the_start() -> None:
    first = a_bench_with_a_topic()
    first.zk(Create("/config/topics/orders", b'{"version":1,"config":{"flush.ms":"5"}}'))
    first.zk(Create("/config/brokers/<default>", b'{"version":1,"config":{"log.segment.bytes":"99"}}'))

    again = Bench(tree=first.tree)
    again.session = 200
    again.deliver(first.tree.end_session(first.session))
    again.start()

    assert again.node.configs.log_config("orders").flush_ms == 5
    assert again.node.config.log.segment_bytes == 99


def test_a_new_session_reads_what_was_missed() -> None:
    bench = a_bench_with_a_topic()
    edit(bench, TOPIC, "orders", ("flush.ms", SET, "5"))
    bench.tree.apply(
        SetData("/config/topics/orders", b'{"version":1,"config":{"flush.ms":"6"}}', ANY_VERSION), 900, 1
    )

    bench.expire_session(new_session=101)

    assert bench.node.configs.log_config("orders").flush_ms == 6


def test_a_change_that_another_broker_makes_at_the_same_moment_is_not_lost() -> None:
    bench = a_bench_with_a_topic()
    assert edit(bench, TOPIC, "orders", ("retention.ms", SET, "1000")) == (0, None)
    setting = incremental_alter_configs.AlterableConfig(
        name="min.insync.replicas", config_operation=SET, value="2"
    )
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name="orders", configs=[setting]
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    bench.zk_is_held = True
    bench.send(bench.connect(), request, 1)
    bench.settle()
    [read] = bench.held
    bench.held.clear()
    bench.answer(read)
    bench.settle()

    theirs = b'{"version":1,"config":{"retention.ms":"1000","segment.bytes":"70000"}}'
    bench.zk(SetData("/config/topics/orders", theirs, ANY_VERSION))
    bench.zk_is_held = False
    for held in bench.held:
        bench.answer(held)
    bench.settle()
    bench.advance(200)

    assert stored(bench, "topics/orders") == {
        "retention.ms": "1000",
        "segment.bytes": "70000",
        "min.insync.replicas": "2",
    }


@pytest.mark.parametrize(
    "stray", ["by hand", "config_change_", "config_change_9999999999", "config_change_12"]
)
def test_a_node_beside_the_notes_keeps_nobody_from_following_them(stray: str) -> None:
    """Neither a broker that runs, nor one that starts."""
    first = a_bench_with_a_topic()
    first.zk(Create(f"/config/changes/{stray}", b""))
    first.zk(Create("/config/brokers/1", b'{"version":1,"config":{"log.retention.ms":"7"}}'))
    first.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("brokers/1"), sequential=True))
    assert first.node.config.log.retention_ms == 7

    again = Bench(tree=first.tree)
    again.session = 200
    again.deliver(first.tree.end_session(first.session))
    again.start()
    changed = b'{"version":1,"config":{"log.retention.ms":"8"}}'
    again.zk(SetData("/config/brokers/1", changed, ANY_VERSION))
    again.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("brokers/1"), sequential=True))

    assert again.node.config.log.retention_ms == 8


def test_settings_that_zookeeper_hangs_up_on_are_refused_and_the_session_is_left_in_peace() -> None:
    bench = ControllerBench().start()
    bench.lose = lambda op: False if isinstance(op, Multi) and len(str(op)) > 1_000_000 else None
    rows = [(f"plugin.{number}", SET, "x" * 30_000) for number in range(40)]
    connection = bench.connect()
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=BROKER,
        resource_name="1",
        configs=[incremental_alter_configs.AlterableConfig(*row) for row in rows],
    )

    bench.send(connection, incremental_alter_configs.IncrementalAlterConfigsRequest([resource]), 1)
    bench.advance(5_000)

    [answer] = [b"".join(each.parts)[4:] for each in bench.written if each.connection == connection]
    _, response = decode_response(incremental_alter_configs.IncrementalAlterConfigsResponse, 1, answer)
    assert [row.error_code for row in response.responses] == [ErrorCode.INVALID_CONFIG]
    assert len([op for op in bench.zk_log if isinstance(op, Multi)]) < 10
