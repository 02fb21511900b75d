"""How a member of a group behaves, by Kafka's names with ``_`` for ``.``, and with Kafka's defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipConfig:
    """The settings of a group's member."""

    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """How long the group waits for its members to rejoin, and how long a program may go without a poll: then
    the member leaves, and joins again at the next poll."""
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
