"""Planted bugs: each breaks one rule of the product while its block runs. Somebody must notice.

``python -m simulation.hunt NAME …`` (from ``tests/``) tells after how many seeds each is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation import client_bugs, controller_bugs, log_bugs, replication_bugs

MUTANTS: dict[str, Callable[[], Any]] = {
    plant.__name__: plant
    for plant in (
        replication_bugs.truncate_to_watermark,
        replication_bugs.never_truncate,
        replication_bugs.watermark_ignores_followers,
        replication_bugs.min_isr_ignored,
        replication_bugs.old_words_count,
        replication_bugs.anyone_joins_the_isr,
        replication_bugs.lag_is_forgiven,
        replication_bugs.no_leader_epoch_fence,
        controller_bugs.unclean_always,
        controller_bugs.isr_of_strangers,
        log_bugs.retries_are_new,
        log_bugs.epochs_forgotten,
        controller_bugs.lost_requests_stay_lost,
        controller_bugs.never_registers_again,
        controller_bugs.gone_topics_stay,
        controller_bugs.removed_replicas_stay,
        log_bugs.dead_disks_are_empty,
        replication_bugs.joins_before_its_epoch,
        replication_bugs.acknowledged_at_once,
        replication_bugs.deposed_leader_acknowledges,
        replication_bugs.follower_watermark_unbounded,
        replication_bugs.uncommitted_is_served,
        controller_bugs.unknown_while_reading,
        controller_bugs.moves_end_early,
        controller_bugs.preferred_whatever_the_isr,
        controller_bugs.isr_of_the_dead,
        controller_bugs.nobody_is_told,
        controller_bugs.deleted_logs_stay,
        controller_bugs.producer_ids_given_twice,
        log_bugs.one_batch_remembered,
        log_bugs.batches_not_recalled,
        log_bugs.recovery_drops_a_batch,
        log_bugs.keys_confused,
        log_bugs.everything_is_cleaned,
        log_bugs.lives_on_without_a_disk,
        log_bugs.old_generations_commit,
        log_bugs.groups_not_loaded,
        log_bugs.commits_not_written,
        log_bugs.everyone_gets_the_same,
        log_bugs.generations_begin_anew,
        log_bugs.shared_without_writing,
        replication_bugs.no_fetch_fence,
        replication_bugs.no_epochs_between_replicas,
        controller_bugs.no_controller_epoch_fence,
        replication_bugs.watermark_ignores_pending_isr,
        controller_bugs.never_stands_again,
        log_bugs.epochs_outlive_the_cut,
        replication_bugs.diverging_fetch_counts,
        replication_bugs.end_told_too_early,
        replication_bugs.lost_isr_answer,
        replication_bugs.first_batches_not_awaited,
        controller_bugs.no_fence_in_zookeeper,
        controller_bugs.stale_lives_obeyed,
        controller_bugs.versions_unchecked,
        controller_bugs.nothing_checked_in_zookeeper,
        log_bugs.retention_ignores_the_watermark,
        log_bugs.producers_survive_the_cut,
        client_bugs.lost_means_failed,
        client_bugs.late_fetches_count,
        client_bugs.errors_skip_ahead,
        client_bugs.shares_begin_at_the_first_record,
        client_bugs.lost_shares_are_kept,
    )
}
"""All of them were found, by seeds, scenarios or unit tests: `docs/mutants.md` says by which."""

CANDIDATES: dict[str, Callable[[], Any]] = {}
"""Bugs that nobody has found yet, for lack of seeds or of a check; there is none now."""
