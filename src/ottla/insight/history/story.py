"""A partition's history in words, and why it stands as it does."""

from typing import Any

from ottla.controller.election import Rule
from ottla.insight.history.losses import Loss, is_receipt_of, loss_of
from ottla.insight.history.records import is_decision, is_told, last_election, moves_leader
from ottla.insight.picture import PartitionNow
from ottla.insight.wording import joined, time_text

_QUIET = (Rule.ISR_CHANGE.value, Rule.NO_OP.value, Rule.REPLICA_LOST.value)
_ELSEWHERE = "decided by an Apache controller, inferred from znodes (or its record is gone)"
RULES_IN_WORDS = {
    Rule.NEW_PARTITION.value: "new partition: the first replica that is online",
    Rule.OFFLINE.value: "leader offline: the first replica that is online and in sync",
    Rule.UNCLEAN.value: "UNCLEAN: no replica in sync was online, so the first that was online",
    Rule.REASSIGNED.value: "reassigned: the first new replica that is online and in sync",
    Rule.PREFERRED.value: "preferred: back to the first replica",
    Rule.CONTROLLED_SHUTDOWN.value: "controlled shutdown: the first in-sync replica that stays",
}


def now_lines(now: PartitionNow, history: list[dict[str, Any]]) -> list[str]:
    """Who leads, and why."""
    who = f"led by broker {now.leader}" if now.has_leader else "WITHOUT A LEADER"
    last = last_election(history)
    since = f" since {time_text(last['time_ms'])}" if last is not None and is_told(now, history) else ""
    lines = [f"{now.name} is {who}{since} (leader epoch {now.leader_epoch})"]
    lines.append(f"  replicas {joined(now.replicas)}; in sync {joined(now.isr) or 'none'}")
    lines.append(f"  {preferred(now)}")
    if now.has_leader and len(now.isr) < now.min_isr:
        lines.append(f"  writes with acks=all are refused: min.insync.replicas is {now.min_isr}")
    if last is not None and is_told(now, history):
        lines.append(f"  why: {RULES_IN_WORDS.get(last['rule'], last['rule'])}")
        lines.append(f"       {cause_text(last)}")
    elif not is_told(now, history):
        lines.append("  why: " + untold(now, history))
    return lines


def preferred(now: PartitionNow) -> str:
    """Whether the first replica leads, and what keeps it from leading."""
    first = now.replicas[0]
    if now.leader == first and now.has_leader:
        return f"broker {first} is the preferred leader"
    if first not in now.live:
        return f"the preferred leader {first} is not alive"
    if first not in now.isr:
        return f"the preferred leader {first} is not in sync"
    return f"the preferred leader {first} could lead: `ottla leader-election` gives it back"


def untold(now: PartitionNow, history: list[dict[str, Any]]) -> str:
    """What to print for epochs that no Ottla controller recorded."""
    epochs = [row["after"]["leader_epoch"] for row in history if is_decision(row) and row.get("after")]
    first = max(epochs) + 1 if epochs else 0
    return f"{_span(first, now.leader_epoch)} {_ELSEWHERE}"


def _span(first: int, last: int) -> str:
    return f"leader epoch {last}" if first >= last else f"leader epochs {first} to {last}"


Paragraph = tuple[dict[str, Any], list[str]]
"""A record, and what is told of it."""


def history_lines(history: list[dict[str, Any]], *, with_isr: bool) -> list[str]:
    """One paragraph for every decision, receipt and cut, oldest first."""
    return [line for _, lines in paragraphs(history, with_isr=with_isr) for line in lines]


def paragraphs(history: list[dict[str, Any]], *, with_isr: bool) -> list[Paragraph]:
    """The same, each with its record."""
    found: list[Paragraph] = []
    leaderless_since: int | None = None
    epoch: int | None = None
    for row in history:
        if (said := _aside(row, history)) is not None:
            found += [(row, said)] if said else []
            continue
        after = row.get("after")
        if after is None:
            continue
        lines = []
        if epoch is not None and after["leader_epoch"] > epoch + 1:
            lines.append(f"  ({_span(epoch + 1, after['leader_epoch'] - 1)} {_ELSEWHERE})")
        epoch = after["leader_epoch"]
        if row["rule"] in _QUIET and not with_isr and not moves_leader(row):
            found += [(row, lines)] if lines else []
            continue
        lines += _decision(row)
        if after["leader"] < 0:
            leaderless_since = row["time_ms"]
        elif leaderless_since is not None:
            lines.append(f"      {(row['time_ms'] - leaderless_since) / 1000:.3f} s without a leader")
            leaderless_since = None
        found.append((row, lines))
    return found


def _aside(row: dict[str, Any], history: list[dict[str, Any]]) -> list[str] | None:
    """What a receipt, a cut or a fenced transaction says; ``None`` of a decision."""
    match row.get("kind"):
        case "loss receipt":
            return _receipt(row, loss_of(row, history))
        case "unclean start":
            is_told_already = any(is_receipt_of(other, row) for other in history)
            return [] if is_told_already else _receipt(row, loss_of(row, history))
        case "log cut":
            return _cut(row)
        case "transaction fenced":
            return _fenced(row)
        case _:
            return None


def _decision(row: dict[str, Any]) -> list[str]:
    after, before = row["after"], row.get("before")
    came_from = (
        f" (was {_leader(before['leader'])})" if before and before["leader"] != after["leader"] else ""
    )
    lines = [
        f"  {time_text(row['time_ms'])}  {_leader(after['leader'])} leads{came_from},"
        f" epoch {after['leader_epoch']}, in sync {joined(after['isr']) or 'none'}"
    ]
    lines.append(f"      rule: {RULES_IN_WORDS.get(row['rule'], row['rule'])}")
    lines.append("      candidates: " + "; ".join(candidate_text(c) for c in row["candidates"]))
    if row.get("why"):
        lines.append(f"      note: {row['why']}")
    lines.append(
        f"      cause: {cause_text(row)}; decided by controller {row['controller']},"
        f" controller epoch {row['controller_epoch']}"
    )
    return lines


def cause_text(row: dict[str, Any]) -> str:
    """The decision's cause; if a new controller found the leader dead, also which broker that was."""
    before = row.get("before")
    offline = [candidate["broker"] for candidate in row["candidates"] if not candidate["online"]]
    if not row["cause"].endswith("took office") or before is None or before["leader"] not in offline:
        return str(row["cause"])
    return f"{row['cause']} and found broker {before['leader']} not alive"


def candidate_text(candidate: dict[str, Any]) -> str:
    """``0 online, in sync``."""
    online = "online" if candidate["online"] else "offline"
    return f"{candidate['broker']} {online}, {'in sync' if candidate['in_sync'] else 'not in sync'}"


def _receipt(row: dict[str, Any], loss: Loss) -> list[str]:
    from_text = "an unknown offset" if loss.start is None else f"offset {loss.start}"
    lines = [
        f"  {time_text(row['time_ms'])}  LOSS RECEIPT of epoch {row['leader_epoch']}: acknowledged records"
        f" from {from_text} on may be lost"
    ]
    before = joined(row["old_isr"]) if "old_isr" in row else "unknown"
    lines.append(f"      broker {row['new_leader']} leads alone; in sync before: {before}")
    if loss.committed_at_least is not None:
        lines.append(f"      offsets below {loss.committed_at_least} are known to have been committed")
    if loss.until is not None:
        lines.append(
            f"      COMPLETE: broker {loss.cut_by} came back and cut offsets {loss.start} to"
            f" {loss.until - 1}: what it alone had is gone"
        )
    else:
        lines.append("      how far they reached is unknown until the old leader comes back")
    return lines


def _cut(row: dict[str, Any]) -> list[str]:
    lost = row["lost"]
    committed = "committed" if row["was_committed"] else "not known to be committed"
    return [
        f"  {time_text(row['time_ms'])}  broker {row['broker']} cut offsets {lost['from']} to"
        f" {lost['until'] - 1} ({committed}) to agree with leader {row['leader']},"
        f" epoch {row['leader_epoch']}"
    ]


def _fenced(row: dict[str, Any]) -> list[str]:
    return [
        f"  {time_text(row['time_ms'])}  transaction '{row['transactional_id']}'"
        f" (producer {row['producer_id']}, epoch {row['producer_epoch']})"
        f" was aborted by its coordinator, broker {row['coordinator']}",
        f"      cause: {row['cause']}; it was open since {time_text(row['began_ms'])}",
    ]


def _leader(number: int) -> str:
    return "nobody" if number < 0 else f"broker {number}"
