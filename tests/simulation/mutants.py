"""Planted bugs: each breaks one rule of the product while its block runs. Somebody must notice.

``python -m simulation.hunt NAME …`` (from ``tests/``) tells after how many seeds each is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation import client_bugs, controller_bugs, group_bugs, log_bugs, replication_bugs

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
        client_bugs.numbered_anew_in_doubt,
        client_bugs.positions_asked_for_once,
        client_bugs.reset_before_it_is_read,
        group_bugs.deleted_offsets_come_back,
        group_bugs.buried_with_a_commit,
        group_bugs.stable_after_the_first_of_two,
        group_bugs.nobody_is_missed_after_a_move,
        group_bugs.loaded_to_the_watermark,
        group_bugs.served_before_it_is_safe,
        group_bugs.commits_wait_for_ever,
        group_bugs.the_gone_are_waited_for,
        group_bugs.leaders_join_in_vain,
        group_bugs.returned_leaders_lead_no_more,
        group_bugs.refused_commits_are_taken_for_done,
        group_bugs.handed_out_means_done,
        group_bugs.no_second_round,
        group_bugs.added_while_away,
        replication_bugs.lost_fetches_were_heard,
        replication_bugs.two_leaders_at_once,
        replication_bugs.refused_once_and_for_all,
        controller_bugs.leaving_for_ever,
        controller_bugs.looks_for_ever,
    )
}
"""All of them were found, by seeds, scenarios or unit tests: `docs/mutants.md` says by which."""

CANDIDATES: dict[str, Callable[[], Any]] = {}
"""Bugs that nobody has found yet, for lack of seeds or of a check; there is none now."""
