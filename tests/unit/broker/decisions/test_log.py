"""Reasons on their way to the topic of decisions: bounded, ordered, and never in the way."""

import json
from typing import Any

from ottla.broker.decisions.log import KEPT_MAX, LINGER_MS, PATIENCE_MS
from ottla.broker.outputs import Exit
from ottla.broker.replicas.losses import LogCut
from ottla.controller.effects import Decided, Decision
from ottla.controller.election import Rule
from ottla.model.ids import BrokerId, LeaderEpoch, TopicPartition
from ottla.model.internal_topics import DECISIONS_TOPIC
from ottla.model.partition_state import LeaderAndIsr
from ottla.records.batch import batches
from ottla.records.record import read_records
from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, SetData
from support.bench.controller_bench import ControllerBench
from support.bench.node_bench import a_config


def in_office(*others: int, **settings: object) -> ControllerBench:
    bench = ControllerBench(a_config(**settings))
    bench.serves_itself = True
    bench.start()
    bench.register(*others)
    return bench


def kept(bench: ControllerBench) -> list[dict[str, Any]]:
    """What the topic holds, read from the node's own log."""
    log = bench.node.log_dirs.logs.get(TopicPartition(DECISIONS_TOPIC, 0))
    if log is None:
        return []
    view = memoryview(bytes(log.read(0, 10_000_000, log.end_offset, True).buffer()))
    values = []
    for header in batches(view):
        values += [json.loads(bytes(record.value or b"")) for record in read_records(view, header)]
    return values


def a_decision(rule: Rule = Rule.OFFLINE) -> Decision:
    brokers = tuple(map(BrokerId, (2, 1)))
    before = LeaderAndIsr(BrokerId(2), LeaderEpoch(4), brokers[:1], 5, 1)
    after = LeaderAndIsr(BrokerId(1), LeaderEpoch(5), brokers[1:], 6, 1)
    return Decision(
        TopicPartition("orders", 0), rule, before, after, brokers, frozenset({BrokerId(1)}), "no choice"
    )


def test_decisions_reach_the_topic_with_their_reasons():
    bench = in_office(2)
    bench.create_topic("orders", (2, 1))
    bench.unregister(2)

    bench.advance(PATIENCE_MS + 5_000)

    found = [record for record in kept(bench) if record["partition"] == "orders-0"]
    assert [record["rule"] for record in found] == ["new partition", "offline partition"]
    assert found[1]["candidates"] == [
        {"broker": 2, "online": False, "in_sync": True},
        {"broker": 1, "online": True, "in_sync": True},
    ]
    assert (found[1]["chosen"], found[1]["cause"], found[1]["controller_epoch"]) == (1, "broker 2 is gone", 1)
    assert found[1]["before"] == {"leader": 2, "leader_epoch": 0, "isr": [2, 1]}
    assert bench.node.decisions.waiting == 0


def test_the_topic_waits_for_three_brokers_so_that_it_has_three_replicas():
    bench = in_office()
    bench.create_topic("orders", (1,))
    bench.advance(5_000)
    assert bench.children("/brokers/topics") == ["orders"]

    bench.register(2, 3)
    bench.advance(2_000)

    assert sorted(bench.topic(DECISIONS_TOPIC).partitions[0].replicas) == [1, 2, 3]
    assert b'"retention.bytes"' in (bench.data(f"/config/topics/{DECISIONS_TOPIC}") or b"")


def test_it_can_be_switched_off():
    bench = in_office(ottla_decisions_enable="false")
    bench.create_topic("orders", (1,))

    bench.advance(PATIENCE_MS + 5_000)

    assert bench.children("/brokers/topics") == ["orders"]
    assert bench.node.decisions.waiting == 0


def test_memory_is_bounded_and_what_does_not_fit_is_counted():
    bench = ControllerBench().start()
    decisions = (a_decision(),) * (KEPT_MAX + 7)

    bench.node.decisions.take(Decided(decisions, 1, "a flood"))

    assert bench.node.decisions.waiting == KEPT_MAX
    assert bench.node.decisions.dropped == 7


def test_what_could_not_be_written_is_written_later_in_its_order():
    bench = in_office()
    bench.create_topic("orders", (1,), (1,))
    bench.advance(PATIENCE_MS - 1_000)
    bench.silent.add("one")
    bench.advance(8_000)
    assert kept(bench) == []

    bench.silent.clear()
    bench.advance(10_000)

    assert [record["partition"] for record in kept(bench)][:2] == ["orders-0", "orders-1"]


def test_a_topic_with_a_low_limit_takes_few_at_a_time_and_what_is_too_large_is_counted():
    bench = in_office()
    bench.create_topic("orders", (1,))
    bench.advance(PATIENCE_MS + 5_000)
    limit = b'{"version":1,"config":{"max.message.bytes":"1500"}}'
    bench.zk(SetData(paths.config_entity("topics", DECISIONS_TOPIC), limit, ANY_VERSION))
    change = b'{"version":2,"entity_path":"topics/%s"}' % DECISIONS_TOPIC.encode()
    bench.zk(Create("/config/changes/config_change_", change, sequential=True))
    bench.settle()
    before = len(kept(bench))

    bench.node.decisions.take(Decided((a_decision(),) * 8, 1, "by hand"))
    bench.node.decisions.take(Decided((a_decision(),), 1, "x" * 5_000))
    bench.advance(60_000)

    written = [record for record in kept(bench)[before:] if record["cause"] == "by hand"]
    assert len(written) == 8
    assert bench.node.decisions.waiting == 0
    assert bench.node.decisions.dropped == 1


def test_an_unclean_election_leaves_a_receipt_with_the_new_leaders_end():
    bench = in_office(2)
    bench.create_topic("orders", (2, 1))
    bench.set_state("orders", 0, leader=2, isr=(2,))
    bench.zk_log.clear()
    bench.unregister(2)
    bench.node.controller.on_topic_config_changed(
        "orders", a_config(unclean_leader_election_enable="true").log
    )
    bench.settle()
    assert bench.led("orders", 0)[0] == -1, "the topic itself does not allow it"

    bench.node.decisions.take(Decided((a_decision(Rule.UNCLEAN),), 1, "by hand"))
    bench.advance(PATIENCE_MS + 40_000)

    receipts = [record for record in kept(bench) if record["kind"] == "loss receipt"]
    assert len(receipts) == 1
    assert (receipts[0]["new_leader"], receipts[0]["old_isr"], receipts[0]["leader_epoch"]) == (1, [2], 5)
    assert receipts[0]["old_end_offset"] is None
    assert receipts[0]["may_be_lost"]["until"] is None


def test_a_cut_log_completes_the_receipt():
    bench = in_office()
    cut = LogCut(
        TopicPartition("orders", 0), BrokerId(1), BrokerId(2), 5, start=100, end=107, high_watermark=104
    )

    bench.node.decisions.on_log_cut(cut)
    bench.create_topic("orders", (1,))
    bench.advance(PATIENCE_MS + 5_000)

    found = [record for record in kept(bench) if record["kind"] == "log cut"]
    assert len(found) == 1
    assert found[0]["lost"] == {"from": 100, "until": 107}
    assert found[0]["was_committed"] is True
    assert found[0]["leader_epoch"] == 5


def with_its_topic() -> ControllerBench:
    bench = in_office()
    bench.create_topic("orders", (1,))
    bench.advance(PATIENCE_MS + 5_000)
    assert bench.node.decisions.waiting == 0
    return bench


def test_a_broker_that_stops_writes_its_last_decisions_first():
    bench = with_its_topic()

    bench.node.decisions.take(Decided((a_decision(),), 1, "by hand"))
    bench.node.begin_shutdown()
    bench.advance(LINGER_MS - 1)

    assert "by hand" in [record["cause"] for record in kept(bench)]
    assert bench.exit == Exit(0, "stopped")


def test_a_broker_that_stops_waits_only_where_something_can_still_be_written():
    idle, unheard = with_its_topic(), with_its_topic()
    gone_on = []

    idle.node.decisions.when_written(lambda: gone_on.append("idle"))
    assert gone_on == ["idle"]

    unheard.serves_itself = False
    unheard.node.decisions.take(Decided((a_decision(),), 1, "by hand"))
    unheard.node.decisions.when_written(lambda: gone_on.append("unheard"))
    unheard.advance(LINGER_MS - 1)
    assert gone_on == ["idle"]
    unheard.advance(1)
    assert gone_on == ["idle", "unheard"]
