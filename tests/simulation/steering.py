"""Where each planted bug is looked for: the kinds of fault and the workload that show it soonest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ottla.sim.plan import Plan, TopicKind, TopicShape, draw_plan


@dataclass(frozen=True)
class Steer:
    """Which faults and which workload bring a bug to light soonest; empty: whatever the seed draws."""

    kinds: tuple[str, ...] = ()
    shape: tuple[tuple[str, Any], ...] = ()
    seconds: int = 30
    a_minute: int | None = None

    def plan(self, seed: int, kinds: tuple[str, ...]) -> Plan:
        plan = draw_plan(seed, self.kinds or kinds, self.seconds, self.a_minute)
        return replace(plan, shape=replace(plan.shape, **dict(self.shape)))


KILLS = ("kill", "kill all", "kill leader", "pause", "shut down")
CUTS = ("cut brokers", "cut from zookeeper", "cut one way", "kill leader", "pause", "slow link")
STATIC_MEMBERS = ("member dies", "member doubles", "member hangs", "member is removed")
OFFICE = ("drop controller", "kill controller", "pause controller", "slow zookeeper", "split zookeeper")
PLAIN = TopicShape("topic-0", TopicKind.PLAIN, 2, {"retention.ms": "-1"})
NO_TRANSACTIONS = (("writers", 0), ("copiers", 0))
SIMPLE = (
    *NO_TRANSACTIONS,
    *(("topics", (PLAIN,)), ("members", 0), ("churns", False), ("careless_producers", 0)),
)
GROUP = (*NO_TRANSACTIONS, ("topics", (PLAIN,)), ("members", 3), ("churns", False))
TRANSACTIONS = (*SIMPLE, ("own_clients", False), ("own_members", 0), ("writers", 3), ("copiers", 3))
PROGRAMS = ("program dies", "program doubles", "program freezes")
STATIC = (*GROUP, ("static_members", 3))
OWN = (*SIMPLE, ("own_clients", True), ("own_members", 3))
CHURN = (*NO_TRANSACTIONS, ("topics", (PLAIN,)), ("members", 0), ("churns", True))
COMPACTED = TopicShape(
    "compacted-0",
    TopicKind.COMPACTED,
    1,
    {"cleanup.policy": "compact", "segment.bytes": "1024", "min.cleanable.dirty.ratio": "0.05"},
)
RETAINED = TopicShape("retained-0", TopicKind.RETAINED, 1, {"segment.bytes": "512", "retention.bytes": "600"})
CLEANED = (*NO_TRANSACTIONS, ("topics", (PLAIN, COMPACTED)), ("members", 0), ("churns", False))
SHORT_LIVED = (*NO_TRANSACTIONS, ("topics", (PLAIN, RETAINED)), ("members", 0), ("churns", False))
SMALL_SEGMENTS = (
    "settings",
    {"log.segment.bytes": "1024", "replica.lag.time.max.ms": "1500", "zookeeper.session.timeout.ms": "1000"},
)
MOVING = (("brokers", 5), *SIMPLE)
MANY = (*MOVING, ("topics", (TopicShape("topic-0", TopicKind.PLAIN, 6, {"retention.ms": "-1"}),)))

STEERED: dict[str, Steer] = {
    **dict.fromkeys(
        (
            "truncate_to_watermark",
            "never_truncate",
            "unclean_always",
            "deposed_leader_acknowledges",
            "recovery_drops_a_batch",
            "retries_are_new",
            "acknowledged_at_once",
            "watermark_ignores_followers",
            "epochs_forgotten",
            "epochs_outlive_the_cut",
        ),
        Steer(KILLS, SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "anyone_joins_the_isr",
            "joins_before_its_epoch",
            "watermark_ignores_pending_isr",
            "no_leader_epoch_fence",
            "follower_watermark_unbounded",
            "isr_of_the_dead",
            "isr_of_strangers",
            "old_words_count",
            "lag_is_forgiven",
            "lost_fetches_were_heard",
            "two_leaders_at_once",
            "refused_once_and_for_all",
        ),
        Steer((*CUTS, "reset connections", "kill all"), SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        ("unknown_while_reading", "leaving_for_ever", "looks_for_ever"),
        Steer((*OFFICE, "kill", "pause", "expire session"), SIMPLE, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "old_generations_commit",
            "groups_not_loaded",
            "commits_not_written",
            "everyone_gets_the_same",
            "generations_begin_anew",
            "shared_without_writing",
            "deleted_offsets_come_back",
            "buried_with_a_commit",
            "stable_after_the_first_of_two",
            "nobody_is_missed_after_a_move",
            "loaded_to_the_watermark",
            "served_before_it_is_safe",
            "commits_wait_for_ever",
            "the_gone_are_waited_for",
            "leaders_join_in_vain",
            "returned_leaders_lead_no_more",
        ),
        Steer((*KILLS, "member hangs", "member leaves", "elect preferred"), GROUP, a_minute=40),
    ),
    **dict.fromkeys(
        (
            "replaced_members_commit",
            "static_ids_not_written",
            "returned_members_lose_their_share",
            "removed_instances_are_remembered",
            "unsettled_commits_are_told",
        ),
        Steer((*KILLS, *STATIC_MEMBERS, "elect preferred", "reset connections"), STATIC, a_minute=60),
    ),
    **dict.fromkeys(
        (
            "lost_means_failed",
            "late_fetches_count",
            "errors_skip_ahead",
            "shares_begin_at_the_first_record",
            "lost_shares_are_kept",
            "numbered_anew_in_doubt",
            "positions_asked_for_once",
            "reset_before_it_is_read",
            "refused_commits_are_taken_for_done",
            "handed_out_means_done",
            "no_second_round",
        ),
        Steer(
            (*KILLS, "member hangs", "elect preferred", "reset connections", "cut clients"), OWN, a_minute=60
        ),
    ),
    **dict.fromkeys(
        ("keys_confused", "everything_is_cleaned"),
        Steer(("kill", "look around", "pause", "reset connections"), CLEANED, a_minute=80),
    ),
    **dict.fromkeys(
        ("no_fence_in_zookeeper", "nothing_checked_in_zookeeper"),
        Steer(("drop controller", "expire session", "slow zookeeper"), MANY, a_minute=200),
    ),
    **dict.fromkeys(
        ("diverging_fetch_counts", "producers_survive_the_cut"),
        Steer(("elect preferred", "kill leader", "slow link", "cut one way"), SIMPLE, a_minute=90),
    ),
    **dict.fromkeys(
        (
            "prepared_is_forgotten",
            "completed_before_its_markers",
            "aborted_in_its_own_epoch",
            "epochs_stay",
            "anyone_may_end_it",
            "nobody_takes_too_long",
            "refused_is_done",
            "told_before_it_is_stored",
            "lost_markers_are_not_repeated",
            "strangers_need_no_marker",
            "markers_stay_with_the_old_leader",
            "early_markers_are_lost",
            "open_offsets_are_told",
            "aborted_offsets_count",
            "committed_offsets_are_lost",
            "zombies_commit_offsets",
            "stable_means_replicated",
            "nothing_was_aborted",
            "unreplicated_markers_count",
            "snapshots_forget_open_transactions",
            "old_epochs_write",
            "deposed_coordinators_mark",
            "late_batches_are_taken",
            "verified_for_ever",
            "committed_before_it_is_sent",
            "failures_are_committed",
        ),
        Steer((*KILLS, *PROGRAMS, "reset connections", "elect preferred"), TRANSACTIONS, a_minute=60),
    ),
    "first_batches_not_awaited": Steer(
        ("pause", "cut brokers", "cut from zookeeper", "slow link"),
        (*SIMPLE, ("producers", 4)),
        a_minute=120,
    ),
    "lost_isr_answer": Steer(
        ("kill controller", "pause", "slow link", "reset connections"), MOVING, a_minute=60
    ),
    "no_controller_epoch_fence": Steer(
        ("pause controller", "slow link", "kill", "drop controller"), MOVING, a_minute=60
    ),
    "lost_requests_stay_lost": Steer(
        ("cut brokers", "expire session", "reset connections", "slow link"), MOVING, a_minute=60
    ),
    "no_epochs_between_replicas": Steer(
        ("slow link", "expire session"), (*SIMPLE, ("producers", 4)), a_minute=120
    ),
    "stale_lives_obeyed": Steer(("expire session", "slow link"), MOVING, a_minute=120),
    "never_stands_again": Steer(("drop controller", "look around", "reset connections"), SIMPLE, a_minute=6),
    "deleted_logs_stay": Steer(("kill", "look around", "pause", "reset connections"), CHURN),
    "moves_end_early": Steer(("reassign", "kill", "pause", "look around"), MOVING, a_minute=60),
    "preferred_whatever_the_isr": Steer(("elect preferred", *KILLS), SIMPLE, a_minute=60),
    "end_told_too_early": Steer(("look around", "kill leader", "pause", "cut brokers"), SIMPLE, a_minute=120),
    "retention_ignores_the_watermark": Steer((*CUTS, "reset connections"), SHORT_LIVED, a_minute=80),
    "one_batch_remembered": Steer((*KILLS, "reset connections"), SIMPLE, a_minute=80),
    "batches_not_recalled": Steer((*KILLS, "reset connections"), (*SIMPLE, SMALL_SEGMENTS), a_minute=80),
    "lives_on_without_a_disk": Steer(("disk error", "disk full", "expire session"), SIMPLE),
    "gone_topics_stay": Steer(
        ("cut from zookeeper", "split zookeeper", "pause", "expire session"), CHURN, a_minute=20
    ),
    "removed_replicas_stay": Steer(
        ("reassign", "pause", "kill controller in mid-turn", "cut from zookeeper"), MOVING, a_minute=60
    ),
    "dead_disks_are_empty": Steer(
        ("disk error", "kill", "kill leader"), (*CHURN, ("directories", 2)), a_minute=80
    ),
    "returned_members_are_never_missed": Steer(
        ("member dies", "member doubles", "look around"), STATIC, a_minute=20
    ),
    "added_while_away": Steer(("grow topic", "kill all", "member hangs", "cut clients"), OWN, a_minute=60),
    "never_registers_again": Steer(("expire session", "cut from zookeeper"), SIMPLE),
}
"""Where a bug is looked for; elsewhere the whole swarm is."""
