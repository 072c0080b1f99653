//! How many pods a job has, how it ends, and what commands do to it.

use std::time::Duration;

use octoflow_engine::{Command, Input, Refusal};
use octoflow_model::{Report, taskset::StopReason};
use serde_json::json;

use super::stage::Stage;

#[test]
fn a_job_that_says_nothing_needs_one_success() {
    let mut stage = Stage::new("{}");
    assert_eq!(stage.counts(), [1, 0, 0, 0]);
    let pod = stage.live()[0].clone();
    assert_eq!(stage.status()["ready"], 0);
    stage.up(&pod);
    assert_eq!(stage.status()["ready"], 1);
    stage.exit(&pod, 0);
    stage.ends("Complete");
    let wanted = "CompletionsReached: Reached expected number of succeeded pods";
    for kind in ["SuccessCriteriaMet", "Complete"] {
        assert_eq!(stage.condition(kind).as_deref(), Some(wanted));
    }
    let status = stage.status();
    assert!(status["completionTime"].is_string() && status["startTime"].is_string());
    assert_eq!((&status["uncountedTerminatedPods"], &status["succeeded"]), (&json!({}), &json!(1)));
    assert!(status.get("active").is_none() && status.get("failed").is_none(), "zeros are left out: {status:#}");
}

#[test]
fn completions_are_reached_with_at_most_parallelism_pods_at_once() {
    let mut stage = Stage::new("{completions: 5, parallelism: 2}");
    for done in 0..5 {
        assert_eq!(stage.live().len(), 2.min(5 - done));
        let pod = stage.live()[0].clone();
        stage.exit(&pod, 0);
    }
    stage.ends("Complete");
    assert_eq!((stage.starts.len(), stage.counts()), (5, [0, 5, 0, 0]));
}

#[test]
fn a_work_queue_makes_no_new_pod_after_the_first_success() {
    let mut stage = Stage::new("{parallelism: 3}");
    assert_eq!(stage.live().len(), 3);
    let pods = stage.live();
    stage.exit(&pods[0], 0);
    stage.exit(&pods[1], 1);
    stage.tick(600);
    assert_eq!((stage.live().len(), stage.starts.len()), (1, 3));
    stage.exit(&pods[2], 0);
    stage.ends("Complete");
    assert_eq!(stage.counts(), [0, 2, 1, 0]);
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let stage = Stage::new("{completions: 0}");
    stage.ends("Complete");
    assert_eq!(stage.starts.len(), 0);
}

#[test]
fn a_suspended_job_has_no_pods_and_counts_none() {
    let mut stage = Stage::new("{suspend: true, completions: 2, parallelism: 2, activeDeadlineSeconds: 100}");
    assert!(stage.live().is_empty() && stage.status().get("startTime").is_none());
    assert_eq!(stage.condition("Suspended").as_deref(), Some("JobSuspended: Job suspended"));
    stage.tick(1000);
    stage.resume();
    let began = stage.status()["startTime"].clone();
    assert_eq!((stage.live().len(), stage.condition("Suspended")), (2, None));
    stage.tick(60);
    stage.suspend();
    assert_eq!(stage.counts(), [0, 0, 0, 2]);
    stage.leave();
    assert_eq!(stage.counts(), [0, 0, 0, 0], "what the job had deleted is no failure");
    stage.tick(60);
    stage.resume();
    assert_ne!(stage.status()["startTime"], began, "it is active anew");
    stage.tick(99);
    assert_eq!(stage.live().len(), 2);
    stage.tick(1);
    assert_eq!(
        stage.condition("FailureTarget").as_deref(),
        Some("DeadlineExceeded: Job was active longer than specified deadline")
    );
    stage.leave();
    stage.ends("Failed");
    assert!(stage.status().get("completionTime").is_none(), "only a complete job has one");
}

#[test]
fn parallelism_may_change_and_the_youngest_pods_go() {
    let mut stage = Stage::new("{completions: 8, parallelism: 2}");
    let first = stage.live();
    first.iter().for_each(|pod| stage.up(pod));
    stage.amend(json!({"parallelism": 4})).unwrap();
    assert_eq!(stage.live().len(), 4);
    stage.amend(json!({"parallelism": 2})).unwrap();
    assert!(stage.told().all(|pod| !first.contains(&pod.to_owned())), "those that run stay");
    assert_eq!(stage.counts(), [2, 0, 0, 2]);
    stage.leave();
    stage.amend(json!({"parallelism": 0})).unwrap();
    assert_eq!(stage.counts(), [0, 0, 0, 2]);
    stage.leave();
    assert_eq!(stage.counts(), [0, 0, 0, 0]);
}

#[test]
fn everything_else_is_immutable() {
    let mut stage = Stage::new("{completions: 3, parallelism: 2}");
    for wrong in
        [json!({"completions": 4}), json!({"template": {}}), json!({"parallelism": -1}), json!({"parallelism": "x"})]
    {
        assert!(matches!(stage.amend(wrong.clone()), Err(Refusal::Invalid(_))), "{wrong}");
    }
    stage.command(Command::Stop).unwrap();
    assert!(matches!(stage.amend(json!({"parallelism": 1})), Err(Refusal::Finished { .. })));
}

#[test]
fn an_elastic_job_grows_and_shrinks_with_its_indexes() {
    let mut stage = Stage::new("{completions: 2, parallelism: 2, completionMode: Indexed}");
    stage.amend(json!({"parallelism": 4, "completions": 4})).unwrap();
    assert_eq!(stage.live().len(), 4);
    let pods: Vec<String> = (0..4).map(|index| stage.of_index(index)).collect();
    stage.exit(&pods[3], 0);
    assert_eq!(stage.status()["completedIndexes"], "3");
    assert!(stage.amend(json!({"parallelism": 1, "completions": 3})).is_err(), "only together, to the same number");
    stage.amend(json!({"parallelism": 1, "completions": 1})).unwrap();
    assert_eq!(stage.status().get("completedIndexes"), None, "an index that is gone is not complete");
    assert_eq!(stage.counts(), [1, 0, 0, 2]);
    stage.exit(&pods[0], 0);
    stage.leave();
    stage.ends("Complete");
}

#[test]
fn a_deleted_pod_is_replaced_at_once_or_when_it_has_ended() {
    for (policy, at_once) in [("TerminatingOrFailed", true), ("Failed", false)] {
        let mut stage = Stage::new(&format!("{{podReplacementPolicy: {policy}}}"));
        let pod = stage.live()[0].clone();
        stage.evict(&pod, StopReason::Deleted);
        stage.tick(10);
        assert_eq!(stage.live().len(), 1 + usize::from(at_once), "{policy}");
        assert_eq!(stage.counts()[2..], [u64::from(at_once), 1], "{policy}");
        stage.exit(&pod, 143);
        stage.tick(10);
        assert_eq!(stage.counts(), [1, 0, 1, 0], "{policy}: one failure either way");
        let next = stage.live()[0].clone();
        stage.exit(&next, 0);
        stage.ends("Complete");
    }
}

#[test]
fn a_stopped_job_has_failed() {
    let mut stage = Stage::new("{completions: 2, parallelism: 2}");
    stage.command(Command::Stop).unwrap();
    assert_eq!((stage.counts(), stage.told().count()), ([0, 0, 2, 2], 2));
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.condition("Failed").as_deref(), Some("Stopped: Job was stopped"));
}

#[test]
fn a_finished_job_expires_after_its_time() {
    let mut stage = Stage::new("{ttlSecondsAfterFinished: 30}");
    let pod = stage.live()[0].clone();
    stage.exit(&pod, 0);
    let run = stage.run(crate::play::RUN);
    assert_eq!(run.expires(), Some(stage.now.saturating_add(Duration::from_secs(30))));
}

#[test]
fn pods_with_readiness_probes_are_ready_when_those_say_so() {
    let probed = "{containers: [{name: main, image: i, command: [c], readinessProbe: {exec: {command: [test]}}}], restartPolicy: Never}";
    let mut stage = Stage::new(&format!("{{parallelism: 2, completions: 2, template: {{spec: {probed}}}}}"));
    let pods = stage.live();
    pods.iter().for_each(|pod| stage.up(pod));
    assert!(stage.task(&pods[0]).pod.is_some(), "somebody must run the probe");
    assert_eq!((&stage.status()["active"], &stage.status()["ready"]), (&json!(2), &json!(0)));
    let (attempt, at) = (stage.attempt(&pods[0]), stage.now);
    stage.input(Input::Report(Report::Ready { attempt, at, ready: true }));
    assert_eq!(stage.status()["ready"], 1);
    stage.restart();
    assert_eq!(stage.status()["ready"], 1);
    stage.input(Input::Report(Report::Ready { attempt, at, ready: false }));
    assert_eq!(stage.status()["ready"], 0);
}
