"""What unclean elections cost, from all that was recorded of them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Loss:
    """What is known of an unclean election's cost; None stands for unknown, ``until`` is exclusive."""

    leader_epoch: int
    start: int | None
    until: int | None
    committed_at_least: int | None
    """The old leader's last known high watermark."""
    cut_by: int | None
    """The broker of the old ISR that came back and cut its log: with it the range is exact."""


def losses(history: list[dict[str, Any]]) -> list[Loss]:
    """One for every unclean election on record, oldest first."""
    found = {
        row["leader_epoch"]: loss_of(row, history)
        for row in history
        if row.get("kind") in ("loss receipt", "unclean start")
    }
    return list(found.values())


def loss_of(row: dict[str, Any], history: list[dict[str, Any]]) -> Loss:
    """All records about the unclean election of this row, merged."""
    epoch = row["leader_epoch"]
    said = [
        other
        for other in history
        if other.get("kind") in ("loss receipt", "unclean start") and other["leader_epoch"] == epoch
    ]
    starts = [other["may_be_lost"]["from"] for other in said if other["may_be_lost"]["from"] is not None]
    start = min(starts, default=None)  # a leader knows what of its log may be its own; controllers do not
    committed = [other.get("old_high_watermark_at_least") for other in said]
    known = [offset for offset in committed if offset is not None]
    old_isr = next((other["old_isr"] for other in said if "old_isr" in other), None)
    cuts = [
        other
        for other in history
        if other.get("kind") == "log cut"
        and other["leader_epoch"] >= epoch
        and (old_isr is None or other["broker"] in old_isr)
        and (not starts or other["lost"]["from"] <= max(starts))  # a later cut belongs to another election
    ]
    if not cuts:
        return Loss(epoch, start, None, max(known, default=None), None)
    longest = max(cuts, key=lambda cut: int(cut["lost"]["until"]))
    lost = longest["lost"]
    return Loss(epoch, lost["from"], lost["until"], max(known, default=None), longest["broker"])


def is_receipt_of(other: dict[str, Any], start: dict[str, Any]) -> bool:
    return other.get("kind") == "loss receipt" and bool(other["leader_epoch"] == start["leader_epoch"])
