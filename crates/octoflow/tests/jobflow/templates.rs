//! Templates: missing, edited, patched.

use serde_json::{Value, json};

use crate::stage::{Stage, after, flow, names, path_of, shows, template};

#[test]
fn jf13_a_missing_template_makes_its_entry_wait_and_no_other() {
    let mut stage = Stage::with_server();
    stage.create(&[template("here", "true")]);
    stage.create(&[flow("test", json!([{"name": "later"}, {"name": "here"}]))]);
    let open = stage.until_status("test", "the other one is done", |status| {
        status["completedJobs"] == json!(["test-here"]) && status["state"]["message"] != ""
    });
    let why = open["status"]["conditions"]["test-later"]["message"].as_str().unwrap();
    assert!(why.contains("JobTemplate 'later' is missing"), "{why}");
    assert!(open["status"]["state"]["message"].as_str().unwrap().contains("'later' waits"), "{:#}", open["status"]);
    let told = stage.ends(0, &["explain", "test"]).out;
    assert!(told.contains("JobTemplate 'later' is missing"), "{told}");
    // It is waited for after a restart too.
    stage.kill_and_restart();
    stage.create(&[template("later", "true")]);
    let done = stage.until("test", "Succeed");
    assert_eq!(names(&done, "completedJobs"), ["test-later", "test-here"]);
}

#[test]
fn jf13_a_flow_whose_only_template_is_missing_is_pending() {
    let stage = Stage::with_server();
    stage.create(&[flow("test", json!([{"name": "later"}]))]);
    let open = stage.until_status("test", "it says why", |status| status["state"]["message"] != "");
    assert_eq!(open["status"]["state"]["phase"], "Pending", "{:#}", open["status"]);
    stage.ends(0, &["stop", "test"]);
    let done = stage.until("test", "Failed");
    assert_eq!(done["status"]["conditions"]["test-later"]["phase"], "waiting", "{:#}", done["status"]);
}

#[test]
fn jf14_an_edited_template_counts_for_jobs_not_made_yet() {
    let stage = Stage::with_server();
    let first = format!("{}; {}", stage.marks("old"), stage.waits("go"));
    stage.create(&[template("a", &first), template("b", &stage.marks("old"))]);
    stage.create(&[flow("test", json!([{"name": "a"}, after("b", &["a"])]))]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    for name in ["a", "b"] {
        stage.replace_template(&template(name, &stage.marks("new")));
    }
    stage.say("go");
    stage.until("test", "Succeed");
    assert_eq!(stage.marked(), ["old", "new"]);
}

#[test]
fn a_patch_changes_the_job_and_not_its_template() {
    let stage = Stage::with_server();
    stage.create(&[template("a", "true")]);
    let more = json!({"tasks": [{"name": "main", "replicas": 3}], "maxRetry": 5});
    for (name, field) in [("one", "jobSpec"), ("two", "spec")] {
        stage.create(&[flow(name, json!([{"name": "a", "patch": {field: more}}]))]);
        stage.until(name, "Succeed");
        let job = stage.job(&format!("{name}-a")).unwrap();
        assert_eq!((&job["spec"]["tasks"][0]["replicas"], &job["spec"]["maxRetry"]), (&json!(3), &json!(5)));
        assert_eq!(job["status"]["succeeded"], 3, "{:#}", job["status"]);
    }
    let (_, from) = stage.ask("GET", "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates/a", None);
    assert_eq!(from["spec"]["tasks"][0]["replicas"], 1);
}

#[test]
fn a_job_that_cannot_be_admitted_fails_its_entry_with_the_reason() {
    let stage = Stage::with_server();
    stage.create(&[template("a", "true")]);
    let wrong = json!({"name": "a", "patch": {"jobSpec": {"minAvailable": 9}}});
    stage.create(&[flow("test", json!([wrong]))]);
    let done = stage.until("test", "Failed");
    let why = done["status"]["conditions"]["test-a"]["message"].as_str().unwrap();
    assert!(why.contains("minAvailable"), "{why}");
    // A name that is taken by somebody else is not taken over.
    stage.create(&[json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "other-a"},
                          "spec": template("a", "true")["spec"]})]);
    stage.create(&[flow("other", json!([{"name": "a"}]))]);
    let done = stage.until("other", "Failed");
    let why = done["status"]["conditions"]["other-a"]["message"].as_str().unwrap();
    assert!(why.contains("'other-a' exists already"), "{why}");
    // People are told the name of the Job that is in the way, and not that of the entry.
    shows(&stage.ends(0, &["get", "other"]).out, &["'other-a' exists already"]);
    shows(&stage.ends(0, &["explain", "other"]).out, &["'other-a' exists already"]);
}

#[test]
fn a_job_of_a_suspended_flow_whose_template_comes_waits_until_the_flow_is_resumed() {
    let stage = Stage::with_server();
    stage.create(&[flow("test", json!([{"name": "later"}]))]);
    stage.until_status("test", "it says why", |status| status["state"]["message"] != "");
    stage.ends(0, &["suspend", "test"]);
    stage.create(&[template("later", &stage.marks("ran"))]);
    let held = stage.until_status("test", "its job is aborted", |status| status["unKnowJobs"] == json!(["test-later"]));
    assert_eq!(held["status"]["conditions"]["test-later"]["phase"], "Aborted", "{:#}", held["status"]);
    assert!(stage.marked().is_empty());
    stage.ends(0, &["resume", "test"]);
    stage.until("test", "Succeed");
    assert_eq!(stage.marked(), ["ran"]);
}

#[test]
fn a_name_that_is_no_name_is_told_once() {
    let stage = Stage::with_server();
    let wrong = template("A", "true");
    let (status, body) = stage.ask("POST", path_of(&wrong), Some(&wrong));
    let causes: Vec<&Value> =
        body["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    assert_eq!((status, causes), (422, vec![&json!("metadata.name")]), "{body:#}");
}
