"""From a process to a member of the cluster, and back after a lost session."""

import json

import pytest

from ottla.broker.outputs import Output, RunInThread
from ottla.config.log import LogConfig
from ottla.model.ids import BrokerId
from ottla.sim.machine.zookeeper_server import ZooKeeperServer
from ottla.storage.directories.log_dirs import LogDirs
from ottla.znodes import paths
from ottla.znodes.codec import decode_broker, encode_cluster_id
from ottla.znodes.codec_config import encode_config_change
from ottla.zookeeper.ops import (
    ANY_VERSION,
    AuthFailed,
    Create,
    Failed,
    GetChildren,
    GetData,
    Lost,
    Multi,
    MultiRead,
    SessionConnected,
    SessionExpired,
    SetData,
    ZkCode,
)
from support.bench.node_bench import OPERATOR, SESSION, Bench, a_config

THEIRS = (
    b'{"version":5,"host":"%s","port":9092,"endpoints":["PLAINTEXT://%s:9092"],"jmx_port":-1,'
    b'"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"timestamp":"1","features":{}}'
)


def a_tree_with(broker: int, host: bytes, session: int) -> ZooKeeperServer:
    """A cluster in which some session has registered a broker."""
    tree = ZooKeeperServer()
    tree.open_session(OPERATOR)
    if session != OPERATOR:
        tree.open_session(session)
    for path in ("/brokers", "/brokers/ids"):
        tree.apply(Create(path), OPERATOR, 1)
    path = paths.broker(broker)
    registration = THEIRS % (host, host)
    tree.apply(Multi((Create(path, None, ephemeral=True), SetData(path, registration, 0))), session, 1)
    return tree


def a_tree_of_cluster(cluster_id: str) -> ZooKeeperServer:
    tree = ZooKeeperServer()
    tree.open_session(OPERATOR)
    tree.apply(Create("/cluster"), OPERATOR, 1)
    tree.apply(Create(paths.CLUSTER_ID, encode_cluster_id(cluster_id)), OPERATOR, 1)
    return tree


def test_a_first_broker_makes_every_znode_that_kafka_makes() -> None:
    bench = Bench().start()

    assert set(paths.PERSISTENT) <= set(bench.tree.nodes)
    assert all(bench.tree.nodes[path].data is None for path in paths.PERSISTENT)
    cluster = json.loads(bench.tree.nodes[paths.CLUSTER_ID].data or b"")
    assert cluster == {"version": "1", "id": bench.node.identity.cluster_id}
    assert len(bench.node.identity.cluster_id) == 22


def test_the_registration_is_kafkas_and_its_czxid_is_the_epoch() -> None:
    bench = Bench(a_config(broker_rack="r7")).start()

    node = bench.tree.nodes[paths.broker(1)]
    registration = json.loads(node.data or b"")
    timestamp = registration.pop("timestamp")
    assert registration == {
        "version": 5,
        "host": "one",
        "port": 9092,
        "endpoints": ["PLAINTEXT://one:9092"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "jmx_port": -1,
        "features": {},
        "rack": "r7",
    }
    assert timestamp == str(bench.clock.wall_ms())
    assert node.stat().version == 1
    assert node.stat().ephemeral_owner == SESSION
    assert bench.node.identity.broker_epoch == node.stat().czxid
    assert bench.accepts


def test_clients_are_let_in_only_after_the_registration() -> None:
    bench = Bench()
    bench.zk_is_held = True
    bench.start()
    while not bench.accepts:
        was_registered = paths.broker(1) in bench.tree.nodes
        bench.answer(bench.held.pop(0))
        bench.settle()

    assert not was_registered, "the answer to the registration opens the listeners"
    assert paths.broker(1) in bench.tree.nodes


def test_a_cluster_id_that_zookeeper_does_not_show_is_a_reason_to_end() -> None:
    bench = Bench(tree=a_tree_of_cluster("some-cluster"))
    bench.zk_is_held = True
    bench.start()
    for _ in range(100):
        for held in [bench.held.pop(0) for _ in bench.held]:
            if isinstance(held.operation, GetData) and held.operation.path == paths.CLUSTER_ID:
                bench.node.on_zk_result(held.token, Failed(ZkCode.NO_AUTH))
            else:
                bench.answer(held)
        bench.settle()

    assert bench.exit is not None
    assert paths.CLUSTER_ID in bench.exit.reason


def test_the_cluster_id_that_is_there_is_taken_over() -> None:
    bench = Bench(tree=a_tree_of_cluster("theCluster")).start()

    assert bench.node.identity.cluster_id == "theCluster"


def test_log_directories_of_another_cluster_refuse_the_start() -> None:
    first = Bench().start()
    first.node.log_dirs.close()
    second = Bench(tree=a_tree_of_cluster("another"), disk=first.disk)

    second.start()

    assert second.exit is not None
    assert second.exit.code == 1
    assert "cluster" in second.exit.reason


def test_log_directories_of_another_broker_refuse_the_start() -> None:
    first = Bench().start()
    first.node.log_dirs.close()
    second = Bench(a_config(broker_id=2, listeners="PLAINTEXT://two:9092"), first.tree, first.disk)
    second.session = 200

    second.start()

    assert second.exit is not None
    assert "broker 1" in second.exit.reason


def test_a_broker_without_an_id_takes_one_above_the_reserved_and_keeps_it() -> None:
    config = a_config(broker_id=-1)
    first = Bench(config).start()
    assert first.node.broker_id == 1001
    first.node.log_dirs.close()

    again = Bench(config, first.tree, first.disk)
    again.session = 200
    again.deliver(first.tree.end_session(SESSION))
    again.start()
    other = Bench(a_config(broker_id=-1, listeners="PLAINTEXT://two:9092"), first.tree)
    other.session = 300
    other.start()

    assert again.node.broker_id == 1001
    assert other.node.broker_id == 1002


def test_another_live_broker_with_the_same_id_is_a_refusal() -> None:
    bench = Bench(tree=a_tree_with(1, b"elsewhere", OPERATOR)).start()

    assert bench.exit is not None
    assert "elsewhere:9092" in bench.exit.reason
    assert not bench.accepts


def test_another_broker_with_the_same_address_is_a_refusal() -> None:
    bench = Bench(tree=a_tree_with(5, b"one", OPERATOR)).start()

    assert bench.exit is not None
    assert "broker 5" in bench.exit.reason
    assert paths.broker(1) not in bench.tree.nodes


def test_the_registration_of_the_own_dead_predecessor_is_waited_out(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tree=a_tree_with(1, b"one", 50))
    with caplog.at_level("INFO"):
        bench.start()
        bench.advance(3_000)
        assert not bench.accepts
        bench.deliver(bench.tree.end_session(50))
        bench.advance(200)

    assert bench.accepts
    assert bench.tree.nodes[paths.broker(1)].stat().ephemeral_owner == SESSION
    assert len([line for line in caplog.messages if line.startswith("waiting for the end")]) == 1


def test_a_predecessor_that_never_dies_is_another_process_and_a_refusal() -> None:
    bench = Bench(tree=a_tree_with(1, b"one", OPERATOR)).start()

    bench.advance(120_000)

    assert bench.exit is not None
    assert "another process" in bench.exit.reason


def test_a_registration_whose_answer_was_lost_is_recognised_as_the_own() -> None:
    bench = Bench()
    bench.tree.open_session(SESSION)
    for path in ("/brokers", "/brokers/ids"):
        bench.tree.apply(Create(path), SESSION, 1)
    bench.tree.apply(Create(paths.broker(1), THEIRS % (b"one", b"one"), ephemeral=True), SESSION, 1)

    bench.start()

    assert bench.accepts
    assert bench.node.identity.broker_epoch == bench.tree.nodes[paths.broker(1)].stat().czxid


def test_after_an_expired_session_the_broker_registers_again_under_a_new_epoch() -> None:
    bench = Bench().start()
    before = bench.node.identity.broker_epoch

    bench.expire_session(new_session=101)

    node = bench.tree.nodes[paths.broker(1)]
    assert node.stat().ephemeral_owner == 101
    assert bench.node.identity.broker_epoch == node.stat().czxid > before
    assert bench.exit is None


def test_a_registration_of_the_lost_session_that_still_stands_is_replaced() -> None:
    """The server has told us of the end, and has not come to removing what the session left (KAFKA-7165)."""
    bench = Bench().start()
    bench.node.on_zk_session(SessionExpired(bench.session))
    bench.settle()
    assert bench.tree.nodes[paths.broker(1)].stat().ephemeral_owner == SESSION

    bench.session = 101
    bench.tree.open_session(101)
    bench.node.on_zk_session(SessionConnected(101, True))
    bench.settle()

    assert bench.tree.nodes[paths.broker(1)].stat().ephemeral_owner == 101


def test_a_broker_whose_id_was_taken_while_it_was_away_gives_up() -> None:
    bench = Bench().start()
    bench.tree.open_session(77)
    bench.deliver(bench.tree.end_session(SESSION))
    stolen = THEIRS % (b"thief", b"thief")
    bench.tree.apply(Create(paths.broker(1), stolen, ephemeral=True), 77, 1)

    bench.expire_session(new_session=101)

    assert bench.exit is not None
    assert bench.exit.code == 1
    assert "thief:9092" in bench.exit.reason


def test_what_is_registered_reads_back_as_what_was_configured() -> None:
    config = a_config(
        listeners="IN://one:9091,OUT://one:9092",
        advertised_listeners="IN://one:9091,OUT://[2001:db8::1]:19092",
        listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT",
        inter_broker_listener_name="IN",
    )
    bench = Bench(config).start()

    registration = decode_broker(BrokerId(1), bench.tree.nodes[paths.broker(1)].data, 0)

    assert registration.endpoints == config.listeners.advertised_listeners


@pytest.mark.parametrize("moment", [paths.CONFIG_TOPICS, paths.BROKER_IDS])
def test_a_session_that_expires_during_the_start_takes_neither_settings_nor_watches_along(
    moment: str,
) -> None:
    """Logs can take minutes to open; the settings were read and watched before."""
    bench = Bench()
    bench.zk_is_held = True
    bench.start()
    while GetChildren(moment) not in [held.operation for held in bench.held]:
        bench.answer(bench.held.pop(0))
        bench.settle()
    lost, bench.held, bench.zk_is_held = bench.held, [], False
    meanwhile = b'{"version":1,"config":{"log.retention.ms":"7","leader.replication.throttled.rate":"9"}}'
    bench.tree.apply(Create("/config/brokers/1", meanwhile), OPERATOR, 1)
    bench.tree.apply(Create(paths.FEATURE, b'{"version":2,"status":1,"features":{}}'), OPERATOR, 1)

    bench.expire_session(new_session=101)
    for each in lost:
        bench.node.on_zk_result(each.token, Lost(maybe_applied=False))
    bench.advance(1_000)

    assert bench.accepts
    assert bench.node.config.log.retention_ms == 7
    assert bench.node.throttles.leader.limit == 9
    assert bench.node.features.epoch == 0

    bench.zk(SetData("/config/brokers/1", b'{"version":1,"config":{"log.retention.ms":"8"}}', ANY_VERSION))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("brokers/1"), sequential=True))
    bench.zk(SetData(paths.FEATURE, b'{"version":2,"status":1,"features":{}}', ANY_VERSION))
    assert bench.node.config.log.retention_ms == 8
    assert bench.node.features.epoch == 1


class SlowThreads(Bench):
    """Threads begin to work when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[RunInThread] = []

    def _perform(self, output: Output) -> None:
        if isinstance(output, RunInThread):
            self.work.append(output)
        else:
            super()._perform(output)

    def let_threads_work(self) -> None:
        work, self.work = self.work, []
        for each in work:
            super()._perform(each)
            self.settle()


def test_logs_are_opened_by_the_settings_of_their_start_whatever_is_learned_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = SlowThreads().start()
    assert isinstance(bench, SlowThreads)
    setting = b'{"version":1,"config":{"flush.ms":"7"}}'
    bench.zk(Create(paths.config_entity("topics", "orders"), setting))
    used: list[dict[str, LogConfig]] = []
    open_logs = LogDirs.open

    def noted(dirs: LogDirs, default: LogConfig, by_topic: dict[str, LogConfig], now_ms: int) -> None:
        used.append(by_topic)
        open_logs(dirs, default, by_topic, now_ms)

    monkeypatch.setattr(LogDirs, "open", noted)
    bench.let_threads_work()  # the directories are locked, and the settings read
    bench.node.configs.forget_topics(["orders"])

    bench.let_threads_work()

    assert [{name: each.flush_ms for name, each in by_topic.items()} for by_topic in used] == [{"orders": 7}]
    assert bench.accepts


def test_servers_that_come_to_demand_a_login_end_the_session_and_another_one_begins_everything_anew() -> None:
    bench = Bench().start()
    bench.advance(1_000)
    assert bench.node.controller.is_active

    bench.deliver(bench.tree.end_session(SESSION))
    bench.node.on_zk_session(AuthFailed("a login is demanded"))
    bench.settle()
    assert not bench.node.controller.is_active
    assert bench.exit is None

    bench.session = 101
    bench.tree.open_session(101)
    bench.node.on_zk_session(SessionConnected(101, True))
    bench.settle()
    assert bench.tree.nodes[paths.broker(1)].stat().ephemeral_owner == 101
    assert bench.node.controller.is_active


def test_a_broker_that_servers_want_a_login_of_does_not_start_and_says_why() -> None:
    bench = Bench()
    bench.zk_is_held = True
    bench.start()

    bench.node.on_zk_session(AuthFailed("a login is demanded"))
    bench.settle()

    assert bench.exit is not None
    assert bench.exit.code == 1
    assert "a login is demanded" in bench.exit.reason


def a_change(value: int) -> bytes:
    return b'{"version":1,"config":{"retention.ms":"%d"}}' % value


@pytest.mark.parametrize("is_at_start", [True, False])
def test_a_setting_that_changes_while_those_of_many_topics_are_read_is_not_taken_back(
    is_at_start: bool,
) -> None:
    """They are read in portions; the news of a change in the first can come before the last."""
    bench = Bench()
    bench.tree.open_session(OPERATOR)
    for path in ("/config", "/config/topics", *(f"/config/topics/t{n:04}" for n in range(1_200))):
        bench.tree.apply(Create(path, a_change(1)), OPERATOR, 1)
    if is_at_start:
        bench.zk_is_held = True
        bench.start()
    else:
        bench.start()
        bench.zk_is_held = True
        bench.expire_session(new_session=101)
    portions = 0
    while portions < 1:
        held = bench.held.pop(0)
        portions += isinstance(held.operation, MultiRead)
        bench.answer(held)
        bench.settle()

    bench.zk(SetData("/config/topics/t0000", a_change(2), ANY_VERSION))
    bench.zk(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change("topics/t0000"), sequential=True))
    while bench.held:
        bench.answer(bench.held.pop(0))
        bench.settle()

    assert bench.node.configs.topic_overrides("t0000") == {"retention.ms": "2"}
