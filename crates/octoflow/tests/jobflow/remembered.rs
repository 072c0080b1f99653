//! What was done stays done, whatever is deleted and however often the controller restarts.

use serde_json::json;

use crate::stage::{Stage, after, eventually, flow, names, template, template_of};

#[test]
fn a_job_that_was_done_is_not_made_again_when_it_is_deleted() {
    let mut stage = Stage::with_server();
    stage.create(&[template("a", &stage.marks("a"))]);
    stage.create(&[
        template("b", &format!("{}; {}", stage.waits("go"), stage.marks("b"))),
        template("c", &stage.marks("c")),
    ]);
    stage.create(&[flow("test", json!([{"name": "a"}, after("b", &["a"]), after("c", &["a", "b"])]))]);
    stage.until_status("test", "b runs", |status| status["runningJobs"] == json!(["test-b"]));
    stage.delete_job("test-a");
    stage.kill_and_restart();
    let open = stage.flow("test");
    assert_eq!((names(&open, "completedJobs"), names(&open, "runningJobs")), (vec!["test-a"], vec!["test-b"]));
    stage.say("go");
    let done = stage.until("test", "Succeed");
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-c"]);
    stage.delete_job("test-b");
    stage.kill_and_restart();
    assert_eq!(stage.flow("test")["status"], done["status"], "no status changes back");
    assert_eq!(stage.marked(), ["a", "b", "c"]);
    assert!(stage.job("test-a").is_none() && stage.job("test-b").is_none());
}

#[test]
fn a_job_that_expires_before_its_dependants_start_counts() {
    let stage = Stage::with_server();
    let mut short = template("a", &stage.marks("a"))["spec"].clone();
    short["ttlSecondsAfterFinished"] = json!(0);
    stage.create(&[template_of("a", short), template("slow", &stage.waits("go")), template("b", &stage.marks("b"))]);
    stage.create(&[flow("test", json!([{"name": "a"}, {"name": "slow"}, after("b", &["a", "slow"])]))]);
    stage.until_status("test", "a is done", |status| status["completedJobs"] == json!(["test-a"]));
    eventually("its job expires", || stage.job("test-a").is_none());
    stage.say("go");
    let done = stage.until("test", "Succeed");
    let listed = &done["status"]["jobStatusList"][0];
    let states: Vec<&str> =
        listed["runningHistories"].as_array().unwrap().iter().filter_map(|part| part["state"].as_str()).collect();
    assert_eq!((&listed["name"], &listed["state"]), (&json!("test-a"), &json!("Completed")), "{listed:#}");
    assert_eq!(states, ["Pending", "Running", "Completed"], "what is gone is still told");
    assert_eq!(stage.marked(), ["a", "b"]);
}

#[test]
fn a_job_deleted_in_the_middle_is_told_to_its_flow() {
    let stage = Stage::with_server();
    stage.create(&[template("a", "sleep 60"), template("b", "true")]);
    stage.create(&[flow("test", json!([{"name": "a"}, after("b", &["a"])]))]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    stage.delete_job("test-a");
    let done = stage.until("test", "Failed");
    assert_eq!(names(&done, "terminatedJobs"), ["test-a"], "{:#}", done["status"]);
    eventually("the job is gone", || stage.job("test-a").is_none());
}
