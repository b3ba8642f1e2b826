//! The contract of a store: one list of cases, run on every engine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "cases are the bodies of tests"
)]

mod access;
mod audit;
mod campaigns;
mod channels;
mod deliveries;
mod events;
mod interests;
mod leases;
mod outages;
mod place;
mod polls;
mod random;

mod records;
mod search;
mod support;
mod tasks;
mod tls;
mod triggers;
mod turns;
mod upgrade;
mod upkeep;

/// Makes a test of each case on each engine.
macro_rules! contract {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        mod sqlite {
            $($(#[test] fn $case() { crate::contract::place::on_sqlite(crate::contract::$module::$case); })+)+
        }
        mod postgres {
            $($(#[test] fn $case() { crate::contract::place::on_postgres(stringify!($case), crate::contract::$module::$case); })+)+
        }
    };
}

contract! {
    tasks:
        a_task_begins_with_everything,
        a_task_is_created_once,
        tasks_are_listed_in_pages,
        states_decide_about_interests,
        an_ended_task_stays_ended,
        a_deleted_task_leaves_nothing;
    search:
        tasks_are_found_by_text_time_and_condition,
        work_that_nobody_does_is_seen,
        failures_are_listed_with_their_turns;
    turns:
        an_append_is_one_step,
        an_append_happens_once,
        an_old_owner_cannot_append,
        a_failed_append_leaves_nothing,
        a_sealed_parameter_never_grows,
        appends_at_once_have_one_winner;
    interests:
        routing_finds_all_who_want_an_event,
        a_thousand_tasks_are_found_at_once;
    events:
        a_second_copy_is_a_duplicate,
        a_copy_after_its_window_is_new,
        an_event_is_routed_once,
        an_old_claim_cannot_route,
        a_failed_routing_leaves_nothing,
        many_are_routed_together,
        an_ended_task_gets_nothing,
        a_trigger_begins_a_task,
        a_replay_is_a_new_attempt,
        an_event_shows_a_page_of_its_deliveries,
        events_are_listed_by_what_became_of_them,
        claims_at_once_share_the_events,
        what_cannot_be_stored_is_refused,
        any_payload_comes_back;
    deliveries:
        a_message_is_delivered_once,
        a_key_stands_for_one_thing,
        tasks_with_work_are_claimed,
        a_task_without_its_process_is_claimed,
        claims_at_once_share_the_tasks,
        a_delivery_can_be_discarded,
        commands_are_read_first,
        a_body_is_kept_once,
        a_task_that_cannot_go_on_is_left_alone;
    leases:
        a_lease_has_one_owner,
        a_fence_only_grows,
        an_owner_renews_and_releases_all,
        only_what_is_worked_on_is_renewed,
        expired_leases_are_taken_over;
    polls:
        a_poll_is_committed_with_what_it_found,
        an_old_owner_cannot_commit_a_poll,
        a_poll_rests_with_its_task,
        a_poll_keeps_its_state,
        polls_at_once_are_shared,
        tools_take_turns;
    channels:
        a_channel_lives_and_is_replaced,
        a_channel_is_renewed_in_time,
        strays_are_swept,
        an_old_owner_cannot_change_a_channel,
        overlapping_channels_tell_of_an_event_once;
    triggers:
        a_tick_fires_once,
        ticks_at_once_fire_once,
        a_skipped_tick_does_not_fire,
        failures_are_counted;
    records:
        a_trace_is_kept_in_order,
        keys_are_found_by_their_hash;
    access:
        a_rotated_key_overlaps_with_its_successor,
        sessions_end_and_are_taken_once,
        lists_show_the_namespaces_asked_for,
        attempts_are_counted_for_all;
    audit:
        the_audit_log_is_a_chain,
        a_checkpoint_takes_the_place_of_what_it_covers,
        an_entry_is_written_with_its_deed_or_neither_is;
    campaigns:
        runs_are_handed_out_and_counted_once,
        a_lost_run_is_handed_out_again,
        probes_come_before_controls_and_controls_before_attacks,
        caps_hold_for_all_workers,
        requests_are_spread_and_slowed_for_all,
        a_slow_run_is_made_twice_and_counted_once,
        a_second_copy_counts_against_its_cap,
        a_second_copy_that_is_given_up_costs_nobody_a_run,
        a_lost_run_is_handed_out_in_order_and_then_alone,
        tokens_of_runs_that_do_not_count_are_spent,
        a_name_goes_on_with_the_same_caps_only,
        a_name_has_one_campaign_at_a_time,
        money_is_capped_for_all_workers,
        models_of_a_provider_share_its_caps,
        a_campaign_is_made_again_as_it_was_planned,
        old_campaigns_are_removed_with_what_only_they_have;
    upkeep:
        what_is_old_is_swept,
        every_kind_ends,
        finished_tasks_end,
        progress_is_seen,
        a_replay_waits_since_it_was_asked_for,
        duplicates_are_kept_out_for_as_long_as_said,
        there_are_counts,
        a_closed_store_is_unavailable,
        what_was_written_is_there_after_opening_again;
    upgrade:
        an_older_schema_is_upgraded,
        a_database_of_version_3_goes_on,
        a_newer_schema_is_refused,
        all_may_open_at_once;
}
