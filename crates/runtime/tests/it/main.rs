//! The process runtime from outside, with real processes. The program is its own spawner and, for crash tests, its own
//! engine, so it brings a small test runner instead of the standard one: spawners must run on the main thread.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test runner speaks to its caller")]
#![expect(
    clippy::unwrap_used,
    reason = "in a test a failure is a panic, and the standard runner's exemption misses us"
)]

mod crash;
mod elsewhere;
mod faults;
mod hosts;
mod isolation;
mod memory;
mod outputs;
mod pods;
mod progress;
mod rig;
mod run;
mod words;

use std::{
    ffi::OsString,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
};

use octoflow_runtime::process::{INIT_ARGUMENT, POD_ARGUMENT, SPAWNER_ARGUMENT, init_main, pod_main, spawner_main};

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident: $($name:ident),* $(,)?;)*) => {
        const TESTS: &[Test] = &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*),*];
    };
}

tests! {
    run:
        both_streams_come_back_byte_for_byte,
        exit_codes_and_signals_are_told_apart,
        a_program_that_is_not_there_is_named,
        an_unknown_image_without_a_command_is_explained,
        the_environment_is_the_list_and_the_container,
        the_working_directory_is_made_when_it_is_missing,
        a_polite_stop_is_heard,
        whoever_ignores_the_polite_signal_is_killed_after_the_grace,
        a_kill_is_at_once,
        a_background_process_does_not_outlive_its_task,
        a_daemon_that_left_the_group_does_not_outlive_its_task,
        a_start_sent_twice_runs_once,
        a_terminal_is_given_when_wanted,
        whoever_lets_go_of_its_terminal_is_not_hung_up,
        the_log_limit_cuts_and_the_task_goes_on,
        a_mebibyte_on_each_stream_arrives_whole,
        many_tasks_at_once_all_end,
        sh_understands_what_bash_and_busybox_understand;
    isolation:
        two_tasks_never_meet_in_tmp,
        writes_do_not_reach_the_machine,
        a_used_file_system_is_as_new_for_the_next_task,
        the_data_directory_is_hidden,
        a_task_of_root_cannot_undo_its_mounts_and_does_what_containers_do,
        folders_that_are_named_stay_visible_below_tmp,
        file_systems_with_folders_shown_are_used_again_and_are_as_new,
        a_path_of_the_machine_is_mounted_only_where_it_is_allowed,
        a_task_sees_and_signals_only_its_own_processes,
        no_process_leads_to_the_machines_files,
        everything_a_task_left_is_gone_when_its_end_is_told,
        a_script_is_found_at_its_path,
        scratch_volumes_are_shared_by_name_and_gone_afterwards,
        a_claim_keeps_what_was_written,
        a_read_only_mount_refuses_writes,
        memory_files_are_private,
        without_isolation_the_working_directory_is_private,
        an_input_never_overwrites_a_file_of_the_machine;
    memory:
        whoever_wants_more_than_its_limit_fails,
        whoever_stays_below_its_limit_succeeds,
        without_a_limit_there_is_none,
        a_limit_holds_for_a_terminal_too,
        a_limit_holds_for_the_children_of_a_process,
        a_limit_holds_for_all_processes_of_a_container_together,
        a_limit_is_of_one_container_and_not_of_its_siblings;
    outputs:
        results_parameters_and_missing_files,
        artifacts_make_the_round_trip,
        a_directory_without_archive_comes_back_as_a_tree,
        a_link_never_shows_the_machines_own_files,
        a_missing_input_is_the_surroundings_fault,
        evil_archives_are_refused,
        part_of_an_artifact_can_be_wanted;
    pods:
        init_containers_run_in_order_before_main,
        a_failed_init_container_keeps_everything_else_from_running,
        j24_a_sidecar_is_ended_when_main_has_ended,
        j24_a_sidecar_that_ignores_the_polite_signal_is_killed_after_the_grace,
        a_sidecar_is_there_when_main_runs,
        a_sidecar_that_fails_by_itself_is_told,
        containers_are_told_of_while_they_run,
        a_set_follows_its_dependencies,
        several_main_containers_are_over_together_and_the_named_one_decides,
        what_depends_on_a_failed_container_never_starts,
        j25_a_container_of_a_set_is_tried_again,
        j25_without_retries_one_failure_is_the_end,
        output_is_marked_and_the_result_is_mains_alone,
        g13_signals_of_containers_are_told,
        a_polite_stop_reaches_main_first_and_starts_nothing_more,
        whoever_ignores_a_stop_is_killed_after_the_grace,
        a_kill_ends_every_container,
        a_background_process_of_a_container_does_not_outlive_the_pod,
        a_program_that_is_not_there_is_that_containers_fault,
        an_unknown_image_is_that_containers_fault,
        scratch_volumes_are_shared_between_containers,
        two_volumes_at_one_path_are_refused,
        every_container_has_its_own_surroundings,
        a_loud_pod_arrives_whole,
        a_pod_outlives_its_engine_and_is_adopted,
        a_pod_that_ended_without_an_engine_is_collected_later;
    progress:
        j22_progress_is_told_while_a_task_runs,
        what_was_said_last_is_told_at_the_end,
        nonsense_is_no_progress;
    words:
        what_is_written_into_the_file_is_the_message,
        a_volume_around_the_file_keeps_what_is_in_it,
        a_bad_end_without_a_message_tells_the_end_of_the_output,
        whoever_does_not_ask_gets_no_message,
        devices_work_beside_the_file,
        the_message_of_several_containers_is_that_of_the_main_one,
        last_words_outlive_the_engine;
    hosts:
        a_task_sees_the_machines_hosts_and_its_own,
        one_text_is_one_file_and_goes_with_its_last_task,
        hosts_outlive_the_engine_and_what_nobody_uses_goes,
        a_hosts_file_of_the_tasks_own_stays_and_the_others_are_beside_it;
    elsewhere:
        a_checkout_below_tmp,
        a_checkout_with_spaces_in_its_path,
        another_user;
    crash:
        a_killed_engine_finds_its_tasks_again,
        what_ended_without_an_engine_is_collected_later,
        an_order_that_was_never_sent_is_started_on_adoption,
        a_dead_spawner_means_lost,
        a_spawner_that_dies_under_a_living_engine_is_replaced,
        what_the_engine_does_not_believe_in_is_ended,
        a_second_engine_is_refused,
        a_clean_goodbye_leaves_no_process,
        a_long_data_path_works,
        a_spawner_whose_data_directory_is_deleted_ends_with_its_tasks,
        a_spawner_ends_on_sigterm_with_and_without_tasks_and_keeps_their_results;
    faults:
        a_stopped_spawner_is_told_of_and_goes_on,
        a_stopped_spawner_does_not_keep_the_engine_from_leaving,
        a_spawner_that_cannot_be_started_is_tried_again_and_tasks_wait,
        without_descriptors_tasks_wait_and_none_fails,
        on_a_full_disk_tasks_wait_and_go_on_when_there_is_space,
        a_loud_task_leaves_the_reserved_space_free,
        without_a_floor_a_disk_that_is_really_full_ends_nothing,
        whoever_writes_more_than_its_limit_is_evicted,
        a_task_that_fills_the_disk_is_evicted_and_others_go_on,
        an_artifact_that_finds_no_space_waits_for_it;
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|first| first.to_str()) {
        Some(SPAWNER_ARGUMENT) => return spawner_main(arguments.into_iter().skip(1)),
        Some(POD_ARGUMENT) => return pod_main(arguments.into_iter().skip(1)),
        Some(INIT_ARGUMENT) => return init_main(arguments.into_iter().skip(1)),
        Some(crash::ENGINE_ARGUMENT) => return crash::engine_main(&arguments[1..]),
        _ => {}
    }
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let ignored = words.contains(&"--ignored");
    let exact = words.contains(&"--exact");
    let values = ["--format", "--test-threads", "--skip", "--color"];
    let filters: Vec<&str> = words
        .iter()
        .enumerate()
        .filter(|(at, word)| !(word.starts_with('-') || *at > 0 && values.contains(&words[at - 1])))
        .map(|(_, word)| *word)
        .collect();
    let chosen = TESTS.iter().filter(|(name, _)| {
        !ignored
            && (filters.is_empty()
                || filters.iter().any(|filter| if exact { name == filter } else { name.contains(filter) }))
    });
    if words.contains(&"--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += u8::from(!passed);
    }
    ExitCode::from(failed.min(1))
}
