"""A decision, a loss receipt or a cut log as one JSON record of ``__ottla_decisions``, for any Kafka client.

The key is the partition, so that a reader who wants one partition can pick it; the value says what was
decided, by which rule, among which candidates, and what caused it.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from ottla.broker.replicas.losses import LogCut, UncleanStart
from ottla.controller.effects import Decision
from ottla.coordinator.shard import TransactionFenced
from ottla.model.ids import BrokerId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr
from ottla.records.record import Record

TRANSACTION_KEY = "transaction "
"""What stands before the transactional id in a key."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Who decided, when, and what made it necessary."""

    controller: BrokerId
    controller_epoch: int
    cause: str
    time_ms: int


def decision_record(decision: Decision, circumstances: Circumstances) -> Record:
    """Why a partition has the leader and the ISR that it has."""
    return _record(
        decision.partition,
        circumstances,
        {
            "kind": "decision",
            "rule": decision.rule.value,
            "before": _state(decision.before),
            "after": _state(decision.after),
            "candidates": candidates(decision),
            "chosen": None if decision.after is None or decision.after.leader < 0 else decision.after.leader,
            "why": decision.why or None,
        },
    )


def candidates(decision: Decision) -> list[dict[str, Any]]:
    """Every replica in the order of choice, with what spoke for it and against it."""
    isr = decision.before.isr if decision.before is not None else decision.replicas
    return [
        {"broker": replica, "online": replica in decision.online, "in_sync": replica in isr}
        for replica in decision.replicas
    ]


@dataclass(frozen=True, slots=True)
class LossReceipt:
    """What an unclean election may have cost; None stands for unknown."""

    partition: TopicPartition
    leader_epoch: int
    old_isr: tuple[BrokerId, ...]
    new_leader: BrokerId
    new_end_offset: int | None
    old_high_watermark_at_least: int | None


def receipt_record(receipt: LossReceipt, circumstances: Circumstances) -> Record:
    """Acknowledged offsets from ``from`` on may be gone; how far they reached, only the old leader knows."""
    return _record(
        receipt.partition,
        circumstances,
        {
            "kind": "loss receipt",
            "leader_epoch": receipt.leader_epoch,
            "old_isr": receipt.old_isr,
            "new_leader": receipt.new_leader,
            "new_end_offset": receipt.new_end_offset,
            "old_end_offset": None,
            "old_high_watermark_at_least": receipt.old_high_watermark_at_least,
            "may_be_lost": {"from": receipt.new_end_offset, "until": None},
        },
    )


def start_record(start: UncleanStart, circumstances: Circumstances) -> Record:
    """The new leader's own word to the receipt; it comes even where an Apache controller elected it."""
    return _record(
        start.partition,
        circumstances,
        {
            "kind": "unclean start",
            "leader_epoch": start.leader_epoch,
            "new_leader": start.broker,
            "new_end_offset": start.end_offset,
            "old_high_watermark_at_least": start.heard_high_watermark,
            "may_be_lost": {"from": start.kept_until, "until": None},
        },
    )


def cut_record(cut: LogCut, circumstances: Circumstances) -> Record:
    """Completes the receipt of the epoch: what the old leader had beyond the new one is known now."""
    return _record(
        cut.partition,
        circumstances,
        {
            "kind": "log cut",
            "broker": cut.broker,
            "leader": cut.leader,
            "leader_epoch": cut.leader_epoch,
            "lost": {"from": cut.start, "until": cut.end},
            "high_watermark": cut.high_watermark,
            "was_committed": True if cut.start < cut.high_watermark else None,
        },
    )


def fenced_record(fenced: TransactionFenced, circumstances: Circumstances) -> Record:
    """Why an open transaction was aborted. Its key is the transactional id: it may have many partitions."""
    value = {
        "kind": "transaction fenced",
        "transactional_id": fenced.transactional_id,
        "producer_id": fenced.producer.producer_id,
        "producer_epoch": fenced.producer.epoch,
        "began_ms": fenced.start_ms,
        "partitions": sorted(map(str, fenced.partitions)),
        "cause": circumstances.cause,
        "coordinator": circumstances.controller,
        "controller_epoch": circumstances.controller_epoch,
        "time_ms": circumstances.time_ms,
    }
    key = f"{TRANSACTION_KEY}{fenced.transactional_id}".encode()
    return Record(key, _encode(value), timestamp=circumstances.time_ms)


def _record(partition: TopicPartition, circumstances: Circumstances, fields: dict[str, Any]) -> Record:
    value = {
        "partition": str(partition),
        **fields,
        "cause": circumstances.cause,
        "controller": circumstances.controller,
        "controller_epoch": circumstances.controller_epoch,
        "time_ms": circumstances.time_ms,
    }
    return Record(str(partition).encode(), _encode(value), timestamp=circumstances.time_ms)


def _state(state: LeaderAndIsr | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": state.isr}
