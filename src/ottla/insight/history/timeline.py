"""What happened to the whole cluster: decisions grouped by what made them necessary."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ottla.controller.election import Rule
from ottla.insight.history.records import is_decision, moves_leader
from ottla.insight.wording import counted, duration_text

GAP_MS_MAX = 10_000
"""Decisions of one cause that are further apart are two incidents."""
OPEN_MAX = 8
"""A record belongs to one of so many last incidents, or begins one."""
INCIDENTS_KEPT = 2_000
PARTITIONS_NAMED = 500
"""Of one incident; the others are counted."""
_UNCLEAN_KINDS = ("loss receipt", "unclean start")
_FENCED_KIND = "transaction fenced"


@dataclass(slots=True)
class Incident:
    """One cause, and all that was decided because of it."""

    number: int
    cause: str
    controller: int
    controller_epoch: int
    began_ms: int
    ended_ms: int
    elections: int = 0
    """Partitions that got another leader, or lost theirs."""
    created: int = 0
    unclean: int = 0
    isr_changes: int = 0
    left_without_leader: int = 0
    without_leader_ms_max: int = 0
    """The longest time that a partition of this incident had no leader, among those that have one again."""
    receipts: int = 0
    """Records of what unclean elections may have cost."""
    fenced: int = 0
    """Transactions that their coordinator aborted; ``controller`` is that coordinator then."""
    rules: Counter[str] = field(default_factory=Counter)
    moves: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How many leaderships went from whom to whom; -1 is nobody."""
    partitions: list[str] = field(default_factory=list)

    @property
    def weight(self) -> str:
        """How bad it was: ``unclean``, ``offline``, ``election`` or ``quiet``."""
        if self.unclean or self.receipts:
            return "unclean"
        if self.left_without_leader:
            return "offline"
        return "election" if self.elections else "quiet"

    def sentence(self) -> str:
        """``3,333 elections in 0.66 s, none unclean, longest without leader 1.90 s``."""
        parts = []
        if self.elections:
            took_ms = self.ended_ms - self.began_ms
            how_fast = f"in {duration_text(took_ms / 1000)}" if took_ms >= 10 else "at once"
            parts.append(f"{counted(self.elections, 'election')} {how_fast}")
            parts.append(f"{self.unclean:,} UNCLEAN" if self.unclean else "none unclean")
        if self.created:
            parts.append(f"{counted(self.created, 'partition')} created")
        if self.left_without_leader:
            parts.append(f"{counted(self.left_without_leader, 'partition')} left without a leader")
        if self.without_leader_ms_max:
            parts.append(f"longest without leader {duration_text(self.without_leader_ms_max / 1000)}")
        if self.isr_changes:
            parts.append(counted(self.isr_changes, "change of the ISR", "changes of the ISR"))
        if self.receipts:
            parts.append(counted(self.receipts, "receipt of loss", "receipts of loss"))
        if self.fenced:
            parts.append(f"{counted(self.fenced, 'transaction')} aborted")
        return ", ".join(parts) or "nothing changed"

    def take(self, row: dict[str, Any]) -> None:
        """One more record of the cause."""
        self.began_ms = min(self.began_ms, row["time_ms"])
        self.ended_ms = max(self.ended_ms, row["time_ms"])
        named = row["partitions"] if row.get("kind") == _FENCED_KIND else [row["partition"]]
        for name in named[: PARTITIONS_NAMED - len(self.partitions)]:
            if name not in self.partitions[-1:]:
                self.partitions.append(name)
        if row.get("kind") == _FENCED_KIND:
            self.fenced += 1
            return
        if row.get("kind") in _UNCLEAN_KINDS:
            self.receipts += 1
            return
        after, before = row.get("after"), row.get("before")
        if not is_decision(row) or after is None:
            return
        self.rules[row["rule"]] += 1
        if before is None:
            self.created += 1
        elif moves_leader(row):
            self.elections += 1
            self.unclean += row["rule"] == Rule.UNCLEAN.value
            self.moves[before["leader"], after["leader"]] += 1
        elif list(before["isr"]) != list(after["isr"]):
            self.isr_changes += 1


class Timeline:
    """Incidents in the order of the log; grows record by record and forgets the oldest."""

    def __init__(self, kept: int = INCIDENTS_KEPT) -> None:
        self.incidents: deque[Incident] = deque(maxlen=kept)
        self._number = 0
        self._leaderless: dict[str, tuple[int, Incident]] = {}

    def take(self, rows: Iterable[dict[str, Any]]) -> None:
        """More records, oldest first."""
        for row in rows:
            incident = self._incident_of(row)
            incident.take(row)
            self._note_leader(row, incident)

    def between(self, from_ms: int | None, until_ms: int | None) -> list[Incident]:
        """Those that touch a span of time, newest first."""
        return [
            incident
            for incident in reversed(self.incidents)
            if (from_ms is None or incident.ended_ms >= from_ms)
            and (until_ms is None or incident.began_ms <= until_ms)
        ]

    def _incident_of(self, row: dict[str, Any]) -> Incident:
        """The open incident of the same cause, or a new one."""
        cause, epoch, time_ms = row["cause"], row["controller_epoch"], row["time_ms"]
        for incident in islice(reversed(self.incidents), OPEN_MAX):
            is_same = incident.cause == cause and incident.controller_epoch == epoch
            if is_same and time_ms - incident.ended_ms <= GAP_MS_MAX:
                return incident
        self._number += 1
        decider = row["coordinator"] if row.get("kind") == _FENCED_KIND else row["controller"]
        incident = Incident(self._number, cause, decider, epoch, time_ms, time_ms)
        self.incidents.append(incident)
        return incident

    def _note_leader(self, row: dict[str, Any], incident: Incident) -> None:
        after = row.get("after")
        if not is_decision(row) or after is None:
            return
        name = row["partition"]
        if after["leader"] < 0:
            if name not in self._leaderless:
                self._leaderless[name] = (row["time_ms"], incident)
                incident.left_without_leader += 1
        elif (lost := self._leaderless.pop(name, None)) is not None:
            since_ms, origin = lost
            origin.without_leader_ms_max = max(origin.without_leader_ms_max, row["time_ms"] - since_ms)
