"""Records of ``__ottla_decisions`` as rows: which are decisions, which belong to the topic's present life."""

from typing import Any

from ottla.controller.election import Rule
from ottla.insight.picture import PartitionNow
from ottla.model.ids import TopicPartition


def this_life(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of the present topic only, not of a deleted one of the same name, ordered by controller epoch.

    Within one epoch the order is that of the log: clocks of several brokers may differ.
    """
    history = sorted(rows, key=lambda row: int(row["controller_epoch"]))
    births = [
        position
        for position, row in enumerate(history)
        if is_decision(row) and row["rule"] == Rule.NEW_PARTITION.value and row.get("before") is None
    ]
    return history[births[-1] :] if births else history


def is_told(now: PartitionNow, history: list[dict[str, Any]]) -> bool:
    """Whether the last decision that we have is the one that counts."""
    epochs = [row["after"]["leader_epoch"] for row in history if is_decision(row) and row.get("after")]
    return bool(epochs) and max(epochs) >= now.leader_epoch


def partition_of(row: dict[str, Any]) -> TopicPartition:
    """The partition that a row is about."""
    topic, _, number = str(row["partition"]).rpartition("-")
    return TopicPartition(topic, int(number))


def is_decision(row: dict[str, Any]) -> bool:
    return row.get("kind") == "decision"


def moves_leader(row: dict[str, Any]) -> bool:
    before = row.get("before")
    return before is None or before["leader"] != row["after"]["leader"]


def last_election(history: list[dict[str, Any]]) -> dict[str, Any] | None:
    elections = [row for row in history if is_decision(row) and row.get("after") and moves_leader(row)]
    return elections[-1] if elections else None


def weight_of(row: dict[str, Any]) -> str:
    """How bad it was, in the words of the timeline."""
    if row.get("kind") == "transaction fenced":
        return "quiet"
    if row.get("kind") != "decision" or row["rule"] == Rule.UNCLEAN.value:
        return "unclean"
    after = row.get("after")
    if after is None or after["leader"] < 0:
        return "offline"
    return "election" if moves_leader(row) else "quiet"
