//! The phase machine: how jobs begin, end, are suspended, resumed and restarted.

use octoflow_engine::{Capacity, Command, Refusal};
use octoflow_model::{Report, RunId, order::Exit};

use super::stage::{Stage, Told};
use crate::play::{ROOMY, RUN};

#[test]
fn vj01_the_object_shows_the_defaults() {
    let stage = Stage::new("tasks: [{replicas: 3}]");
    let object = octoflow_engine::volcano::status::object(stage.run(RUN));
    let (spec, task) = (&object["spec"], &object["spec"]["tasks"][0]);
    assert_eq!((&spec["queue"], &spec["maxRetry"], &spec["minAvailable"]), (&"default".into(), &3.into(), &3.into()));
    assert_eq!((&task["name"], &task["minAvailable"]), (&"default0".into(), &3.into()));
    assert_eq!(stage.live(), ["j-default0-0", "j-default0-1", "j-default0-2"]);
}

#[test]
fn vj04_three_pods_that_succeed_complete_it() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 3}]");
    assert_eq!(stage.phase(), "Pending");
    stage.up_all();
    assert_eq!((stage.phase(), stage.status()["running"].clone()), ("Running".to_owned(), 3.into()));
    for index in 0..3 {
        assert_eq!(stage.phase(), "Running");
        stage.exit(&format!("j-a-{index}"), 0);
    }
    stage.ends("Completed");
    assert_eq!(stage.history(), ["Pending", "Running", "Completed"]);
    assert_eq!(stage.status()["taskStatusCount"]["a"]["phase"]["Succeeded"], 3);
}

#[test]
fn pods_that_end_before_their_start_is_told_count_all_the_same() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}]");
    stage.exit("j-a-0", 0);
    stage.exit("j-a-1", 0);
    stage.ends("Completed");
    assert_eq!(stage.history(), ["Pending", "Running", "Completed"]);
}

#[test]
fn vj05_without_policies_it_runs_until_all_have_ended() {
    let mut stage = Stage::new("{minAvailable: 2, tasks: [{name: a, replicas: 3}]}");
    stage.up_all();
    stage.exit("j-a-0", 0);
    stage.exit("j-a-2", 1);
    assert_eq!(stage.phase(), "Running");
    stage.exit("j-a-1", 0);
    stage.ends("Completed");
    let mut stage = Stage::new("tasks: [{name: a, replicas: 3, minAvailable: 3}]");
    stage.up_all();
    (0..3).for_each(|index| stage.exit(&format!("j-a-{index}"), i32::from(index == 2)));
    stage.ends("Failed");
    // Two of three succeeded, which is enough for the job, but not for one of its tasks.
    let mut stage =
        Stage::new("{minAvailable: 2, tasks: [{name: a, replicas: 2}, {name: b, replicas: 1, minAvailable: 0}]}");
    stage.up_all();
    stage.exit("j-a-0", 0);
    stage.exit("j-a-1", 1);
    stage.exit("j-b-0", 0);
    stage.ends("Failed");
    assert_eq!(stage.status()["state"]["message"], "2 of 3 pods succeeded; too few of task a");
}

#[test]
fn vj06_enough_successes_complete_it_and_the_rest_is_ended() {
    let mut stage = Stage::new("{minSuccess: 1, tasks: [{name: a, replicas: 3}]}");
    stage.up_all();
    stage.exit("j-a-1", 0);
    assert_eq!(stage.phase(), "Completed");
    assert!(!stage.over(), "its pods are still being ended");
    assert_eq!(stage.told_all(), ["j-a-0", "j-a-2"]);
    stage.leave();
    stage.ends("Completed");
    assert_eq!(stage.pod("j-a-1")["phase"], "Succeeded");
    assert_eq!(stage.pod("j-a-0")["phase"], "Absent");
    let mut stage = Stage::new("{minSuccess: 2, minAvailable: 1, tasks: [{name: a, replicas: 2}]}");
    stage.exit("j-a-0", 0);
    stage.exit("j-a-1", 1);
    stage.ends("Failed");
}

#[test]
fn vj13_suspended_it_is_aborted_and_resumed_it_is_another_attempt() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}]");
    stage.up_all();
    stage.exit("j-a-0", 0);
    stage.suspend();
    assert_eq!(stage.phase(), "Aborting");
    assert_eq!(stage.told_all(), ["j-a-1"]);
    stage.leave();
    assert_eq!((stage.phase(), stage.over()), ("Aborted".to_owned(), false));
    assert_eq!(stage.pod("j-a-0")["phase"], "Succeeded", "what had ended is kept");
    stage.restart();
    stage.tick(1000);
    assert_eq!(stage.phase(), "Aborted");
    stage.resume();
    assert_eq!(stage.live(), ["j-a-0", "j-a-1"]);
    assert_eq!(stage.status()["retryCount"], 1);
    stage.up_all();
    assert_eq!(stage.history(), ["Pending", "Running", "Aborting", "Aborted", "Restarting", "Pending", "Running"]);
    stage.exit("j-a-0", 0);
    stage.exit("j-a-1", 0);
    stage.ends("Completed");
}

#[test]
fn resumed_before_its_pods_are_gone_it_waits_for_them() {
    let mut stage = Stage::new("tasks: [{name: a}]");
    stage.suspend();
    stage.resume();
    assert_eq!((stage.phase(), stage.live().len()), ("Restarting".to_owned(), 1));
    stage.leave();
    assert_eq!((stage.phase(), stage.live().len()), ("Pending".to_owned(), 1));
}

#[test]
fn a_job_that_may_not_be_tried_again_fails_when_it_is_resumed() {
    let mut stage = Stage::new("{maxRetry: 1, tasks: [{name: a}]}");
    stage.suspend();
    stage.leave();
    stage.resume();
    stage.ends("Failed");
}

#[test]
fn handed_in_suspended_it_starts_when_it_is_resumed() {
    let mut stage = Stage::new("{suspend: true, tasks: [{name: a}]}");
    assert_eq!((stage.phase(), stage.live().len()), ("Aborted".to_owned(), 0));
    stage.resume();
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
}

#[test]
fn a_person_who_suspends_it_while_it_restarts_is_heard() {
    let mut stage = Stage::new("{policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 2}]}");
    stage.exit("j-a-0", 1);
    assert_eq!(stage.phase(), "Restarting");
    stage.suspend();
    stage.leave();
    assert_eq!(stage.phase(), "Aborted");
}

#[test]
fn stopped_it_is_terminated_and_stays_so() {
    for (command, told) in [(Command::Stop, Told::Stop), (Command::Terminate, Told::Kill)] {
        let mut stage = Stage::new("tasks: [{name: a, replicas: 2}]");
        stage.up_all();
        stage.exit("j-a-0", 0);
        stage.command(command).unwrap();
        assert_eq!(stage.phase(), "Terminating");
        assert_eq!(stage.pods.values().next().unwrap().told, Some(told));
        stage.leave();
        stage.ends("Terminated");
        assert_eq!(stage.pod("j-a-0")["phase"], "Succeeded");
        let resume = Command::Resume { selector: None, supplied: Default::default() };
        for command in [Command::Stop, Command::Terminate, Command::Suspend, resume] {
            assert!(matches!(stage.command(command), Err(Refusal::Finished { .. })));
        }
    }
}

#[test]
fn a_stop_may_be_escalated_and_an_aborted_job_stopped() {
    let mut stage = Stage::new("tasks: [{name: a}]");
    stage.command(Command::Stop).unwrap();
    stage.command(Command::Terminate).unwrap();
    assert_eq!(stage.pods.values().next().unwrap().told, Some(Told::Kill));
    stage.leave();
    stage.ends("Terminated");
    let mut stage = Stage::new("tasks: [{name: a}]");
    stage.suspend();
    stage.leave();
    stage.command(Command::Stop).unwrap();
    stage.ends("Terminated");
}

#[test]
fn each_attempt_counts_until_the_last_one_fails_it() {
    let mut stage = Stage::new(
        "{maxRetry: 3, policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 2}]}",
    );
    for attempt in 1..3 {
        stage.up_all();
        stage.exit("j-a-0", 1);
        stage.leave();
        assert_eq!(stage.status()["retryCount"], attempt);
        assert_eq!(stage.status()["version"], attempt);
        assert_eq!(stage.live().len(), 2);
    }
    stage.up_all();
    stage.exit("j-a-0", 1);
    assert_eq!(stage.phase(), "Failed", "the third attempt was the last");
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.status()["retryCount"], 3);
    assert_eq!(stage.pod("j-a-0")["phase"], "Failed", "the last attempt is kept for people to look at");
    assert_eq!(stage.names().len(), 6);
}

#[test]
fn vj15_a_late_end_of_an_earlier_pod_concerns_nobody() {
    let mut stage = Stage::new("{policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 2}]}");
    let old = stage.attempt("j-a-1");
    stage.exit("j-a-0", 1);
    stage.leave();
    stage.up_all();
    let report = Report::Lost { attempt: old, at: stage.now, why: "late".to_owned() };
    stage.input(octoflow_engine::Input::Report(report));
    assert_eq!((stage.phase(), stage.status()["retryCount"].clone()), ("Running".to_owned(), 1.into()));
    // A job of the same name is another run, and so are its attempts.
    stage.submit(2, "tasks: [{name: a}]");
    let gone = octoflow_model::AttemptId { run: RunId(7), ..old };
    let report = Report::Lost { attempt: gone, at: stage.now, why: "deleted".to_owned() };
    stage.input(octoflow_engine::Input::Report(report));
    assert_eq!(stage.live().len(), 3);
}

#[test]
fn vj22_what_is_over_expires_and_what_is_aborted_stays() {
    let mut stage = Stage::new("{ttlSecondsAfterFinished: 5, tasks: [{name: a}]}");
    stage.suspend();
    stage.leave();
    assert_eq!(stage.engine.run(RUN).unwrap().expires(), None);
    stage.resume();
    stage.exit("j-a-0", 0);
    let due = stage.engine.run(RUN).unwrap().expires().unwrap();
    assert_eq!(due.since(stage.now).as_secs(), 5);
}

#[test]
fn too_many_pods_that_wait_again_make_it_pending() {
    let mut stage = Stage::empty(Capacity { slots: 2, ..ROOMY });
    stage.submit(1, "tasks: [{name: a, replicas: 2}]");
    stage.up_all();
    assert_eq!(stage.phase(), "Running");
    stage.evict("j-a-0", octoflow_model::taskset::StopReason::Evicted);
    stage.end("j-a-0", Exit::Signal(15), None);
    assert_eq!(stage.phase(), "Pending", "it was created again and is not up yet");
    stage.up("j-a-0");
    assert_eq!(stage.phase(), "Running");
    assert_eq!(stage.status()["retryCount"], 0);
}

#[test]
fn nothing_to_run_runs_until_someone_ends_it() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 0}]");
    assert_eq!(stage.phase(), "Running");
    stage.command(Command::Stop).unwrap();
    stage.ends("Terminated");
}

#[test]
fn the_time_after_which_it_expires_counts_from_its_final_phase() {
    let mut stage =
        Stage::new("{minSuccess: 1, minAvailable: 1, ttlSecondsAfterFinished: 60, tasks: [{name: a, replicas: 2}]}");
    stage.up_all();
    let decided = stage.now;
    stage.exit("j-a-0", 0);
    stage.tick(30);
    stage.leave();
    stage.ends("Completed");
    let expires = stage.run(RUN).expires().expect("it expires");
    assert_eq!(expires.since(decided).as_secs(), 60);
}
