"""A partition's history in words, and what would happen next: pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ottla.cli.shared.printing import joined
from ottla.controller.election import Elected, Rule, elect_for_offline_partition
from ottla.model.ids import BrokerId, LeaderEpoch
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

_QUIET = (Rule.ISR_CHANGE.value, Rule.NO_OP.value, Rule.REPLICA_LOST.value)
_ELSEWHERE = "decided by an Apache controller, inferred from znodes (or its record is gone)"
_IN_WORDS = {
    Rule.NEW_PARTITION.value: "new partition: the first replica that is online",
    Rule.OFFLINE.value: "leader offline: the first replica that is online and in sync",
    Rule.UNCLEAN.value: "UNCLEAN: no replica in sync was online, so the first that was online",
    Rule.REASSIGNED.value: "reassigned: the first new replica that is online and in sync",
    Rule.PREFERRED.value: "preferred: back to the first replica",
    Rule.CONTROLLED_SHUTDOWN.value: "controlled shutdown: the first in-sync replica that stays",
}


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """How a partition stands at this moment."""

    name: str
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    live: frozenset[int]
    min_isr: int = 1
    is_unclean_allowed: bool = False

    @property
    def has_leader(self) -> bool:
        return self.leader in self.live


def now_lines(now: PartitionNow, history: list[dict[str, Any]]) -> list[str]:
    """Who leads, and why."""
    who = f"led by broker {now.leader}" if now.has_leader else "WITHOUT A LEADER"
    last = _last_election(history)
    since = f" since {time_text(last['time_ms'])}" if last is not None and is_told(now, history) else ""
    lines = [f"{now.name} is {who}{since} (leader epoch {now.leader_epoch})"]
    lines.append(f"  replicas {joined(now.replicas)}; in sync {joined(now.isr) or 'none'}")
    lines.append(f"  {preferred(now)}")
    if now.has_leader and len(now.isr) < now.min_isr:
        lines.append(f"  writes with acks=all are refused: min.insync.replicas is {now.min_isr}")
    if last is not None and is_told(now, history):
        lines.append(f"  why: {_IN_WORDS.get(last['rule'], last['rule'])}")
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


def is_told(now: PartitionNow, history: list[dict[str, Any]]) -> bool:
    """Whether the last decision that we have is the one that counts."""
    epochs = [row["after"]["leader_epoch"] for row in history if _is_decision(row) and row.get("after")]
    return bool(epochs) and max(epochs) >= now.leader_epoch


def untold(now: PartitionNow, history: list[dict[str, Any]]) -> str:
    """What is to be said of epochs that no Ottla controller told of."""
    epochs = [row["after"]["leader_epoch"] for row in history if _is_decision(row) and row.get("after")]
    first = max(epochs) + 1 if epochs else 0
    return f"{_span(first, now.leader_epoch)} {_ELSEWHERE}"


def _span(first: int, last: int) -> str:
    return f"leader epoch {last}" if first >= last else f"leader epochs {first} to {last}"


def history_lines(history: list[dict[str, Any]], *, with_isr: bool) -> list[str]:
    """One paragraph for every decision, receipt and cut, oldest first."""
    lines: list[str] = []
    leaderless_since: int | None = None
    epoch: int | None = None
    for row in history:
        match row.get("kind"):
            case "loss receipt":
                lines += _receipt(row, loss_of(row, history))
                continue
            case "unclean start":
                if not any(_is_receipt_of(other, row) for other in history):
                    lines += _receipt(row, loss_of(row, history))
                continue
            case "log cut":
                lines += _cut(row)
                continue
        after = row.get("after")
        if after is None:
            continue
        if epoch is not None and after["leader_epoch"] > epoch + 1:
            lines.append(f"  ({_span(epoch + 1, after['leader_epoch'] - 1)} {_ELSEWHERE})")
        epoch = after["leader_epoch"]
        if row["rule"] in _QUIET and not with_isr and not _moves_leader(row):
            continue
        lines += _decision(row)
        if after["leader"] < 0:
            leaderless_since = row["time_ms"]
        elif leaderless_since is not None:
            lines.append(f"      {(row['time_ms'] - leaderless_since) / 1000:.3f} s without a leader")
            leaderless_since = None
    return lines


def _decision(row: dict[str, Any]) -> list[str]:
    after, before = row["after"], row.get("before")
    came_from = (
        f" (was {_leader(before['leader'])})" if before and before["leader"] != after["leader"] else ""
    )
    lines = [
        f"  {time_text(row['time_ms'])}  {_leader(after['leader'])} leads{came_from},"
        f" epoch {after['leader_epoch']}, in sync {joined(after['isr']) or 'none'}"
    ]
    lines.append(f"      rule: {_IN_WORDS.get(row['rule'], row['rule'])}")
    lines.append("      candidates: " + "; ".join(candidate_text(c) for c in row["candidates"]))
    if row.get("why"):
        lines.append(f"      note: {row['why']}")
    lines.append(
        f"      cause: {cause_text(row)}; decided by controller {row['controller']},"
        f" controller epoch {row['controller_epoch']}"
    )
    return lines


def cause_text(row: dict[str, Any]) -> str:
    """What set the decision off; of one that a new controller found waiting, also whose death it was."""
    before = row.get("before")
    offline = [candidate["broker"] for candidate in row["candidates"] if not candidate["online"]]
    if not row["cause"].endswith("took office") or before is None or before["leader"] not in offline:
        return str(row["cause"])
    return f"{row['cause']} and found broker {before['leader']} not alive"


def candidate_text(candidate: dict[str, Any]) -> str:
    """``0 online, in sync``."""
    online = "online" if candidate["online"] else "offline"
    return f"{candidate['broker']} {online}, {'in sync' if candidate['in_sync'] else 'not in sync'}"


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
    """One for every unclean election that left a word, oldest first."""
    found = {
        row["leader_epoch"]: loss_of(row, history)
        for row in history
        if row.get("kind") in ("loss receipt", "unclean start")
    }
    return list(found.values())


def loss_of(row: dict[str, Any], history: list[dict[str, Any]]) -> Loss:
    """All that was said of the unclean election of this row, put together."""
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
        and (not starts or other["lost"]["from"] <= max(starts))  # a cut further on is of a later story
    ]
    if not cuts:
        return Loss(epoch, start, None, max(known, default=None), None)
    longest = max(cuts, key=lambda cut: int(cut["lost"]["until"]))
    lost = longest["lost"]
    return Loss(epoch, lost["from"], lost["until"], max(known, default=None), longest["broker"])


def _is_receipt_of(other: dict[str, Any], start: dict[str, Any]) -> bool:
    return other.get("kind") == "loss receipt" and bool(other["leader_epoch"] == start["leader_epoch"])


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


def this_life(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of the controllers, and only of the topic that is there now, not of one deleted before.

    Within one controller's time the order is that of the log; clocks of several brokers may differ.
    """
    history = sorted(rows, key=lambda row: int(row["controller_epoch"]))
    births = [
        position
        for position, row in enumerate(history)
        if _is_decision(row) and row["rule"] == Rule.NEW_PARTITION.value and row.get("before") is None
    ]
    return history[births[-1] :] if births else history


def what_if(now: PartitionNow) -> dict[int, str]:
    """What would happen if each replica died, by the controller's own rule."""
    return {broker: _if_died(now, broker) for broker in now.replicas}


def _if_died(now: PartitionNow, broker: int) -> str:
    if broker not in now.live:
        return "is not alive already"
    if broker != now.leader:
        isr = [member for member in now.isr if member != broker]
        if broker not in now.isr:
            return "nothing: it is not in sync and does not lead"
        refused = "; writes with acks=all would be refused" if len(isr) < now.min_isr else ""
        return f"broker {now.leader} goes on leading, in sync {joined(isr)}{refused}"
    isr_now = tuple(BrokerId(member) for member in now.isr)
    state = LeaderAndIsr(BrokerId(now.leader), LeaderEpoch(now.leader_epoch), isr_now, 0, 0)
    online = {BrokerId(member) for member in now.live if member != broker}
    election = elect_for_offline_partition(
        ReplicaAssignment(tuple(BrokerId(replica) for replica in now.replicas)),
        state,
        online,
        unclean_allowed=now.is_unclean_allowed,
    )
    if not isinstance(election, Elected):
        return f"the partition would be offline: {election.why}"
    refused = "; writes with acks=all would be refused" if len(election.isr) < now.min_isr else ""
    lost = "; RECORDS COULD BE LOST (unclean)" if election.rule is Rule.UNCLEAN else ""
    return f"broker {election.leader} would lead, in sync {joined(election.isr)}{refused}{lost}"


def _is_decision(row: dict[str, Any]) -> bool:
    return row.get("kind") == "decision"


def _moves_leader(row: dict[str, Any]) -> bool:
    before = row.get("before")
    return before is None or before["leader"] != row["after"]["leader"]


def _last_election(history: list[dict[str, Any]]) -> dict[str, Any] | None:
    elections = [row for row in history if _is_decision(row) and row.get("after") and _moves_leader(row)]
    return elections[-1] if elections else None


def _leader(number: int) -> str:
    return "nobody" if number < 0 else f"broker {number}"


def time_text(time_ms: int) -> str:
    """UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
