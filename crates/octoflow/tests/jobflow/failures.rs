//! What follows when jobs fail, are ended, aborted or tried again.

use serde_json::json;

use crate::stage::{Stage, after, diamond, eventually, flow, names, template};

#[test]
fn jf06_a_failed_job_stops_what_waits_for_it_and_no_other_branch() {
    let stage = Stage::with_server();
    stage.create(&["a", "b", "e"].map(|name| template(name, "true")));
    stage.create(&[template("c", "exit 3"), template("d", &stage.waits("go"))]);
    stage.create(&[diamond("test")]);
    let open = stage.until_status("test", "c has failed", |status| status["failedJobs"] == json!(["test-c"]));
    assert_eq!(open["status"]["state"]["phase"], "Running", "d goes on: {:#}", open["status"]);
    stage.say("go");
    let done = stage.until("test", "Failed");
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-d"]);
    assert_eq!(names(&done, "failedJobs"), ["test-c"]);
    assert_eq!(done["status"]["conditions"]["test-e"]["phase"], "waiting");
    assert!(stage.job("test-e").is_none());
    let told = stage.ends(0, &["explain", "test"]).out;
    assert!(told.contains("test-c") && told.contains("not started: 'e'"), "{told}");
}

#[test]
fn jf08_a_terminated_job_fails_the_flow() {
    let stage = Stage::with_server();
    stage.create(&[
        template("a", "sleep 60"),
        template("b", "true"),
        flow("test", json!([{"name": "a"}, after("b", &["a"])])),
    ]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    stage.ends(0, &["stop", "test-a"]);
    let done = stage.until("test", "Failed");
    assert_eq!(names(&done, "terminatedJobs"), ["test-a"]);
    assert_eq!(names(&done, "failedJobs"), Vec::<&str>::new());
}

#[test]
fn jf08_an_aborted_job_holds_the_flow_open_until_it_is_resumed() {
    let mut stage = Stage::with_server();
    stage.create(&[template("a", &stage.waits("go")), flow("test", json!([{"name": "a"}]))]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    stage.ends(0, &["suspend", "test-a"]);
    let held =
        stage.until_status("test", "a is aborted", |status| status["conditions"]["test-a"]["phase"] == "Aborted");
    assert_eq!(held["status"]["state"]["phase"], "Running");
    assert_eq!(names(&held, "unKnowJobs"), ["test-a"]);
    stage.kill_and_restart();
    assert_eq!(stage.flow("test")["status"]["unKnowJobs"], json!(["test-a"]), "it is held open after a restart");
    stage.say("go");
    stage.ends(0, &["resume", "test-a"]);
    stage.until("test", "Succeed");
}

#[test]
fn jf09_the_jobs_of_a_flow_that_succeeded_are_deleted_if_it_says_so() {
    let stage = Stage::with_server();
    stage.create(&[template("a", "true"), template("b", "true")]);
    for policy in ["delete", "retain"] {
        let mut whole = flow(policy, json!([{"name": "a"}, after("b", &["a"])]));
        whole["spec"]["jobRetainPolicy"] = json!(policy);
        stage.create(&[whole]);
        let done = stage.until_status(policy, "it is over", |status| status["finishedAt"].is_string());
        assert_eq!(done["status"]["state"]["phase"], "Succeed", "{:#}", done["status"]);
        let listed = done["status"]["jobStatusList"].as_array().unwrap();
        assert_eq!(listed.len(), 2, "{:#}", done["status"]);
        assert!(listed.iter().all(|job| job["state"] == "Completed"), "{listed:?}");
        for job in ["a", "b"].map(|name| format!("{policy}-{name}")) {
            if policy == "delete" {
                eventually("the job is gone", || stage.job(&job).is_none());
            } else {
                assert!(stage.job(&job).is_some());
            }
        }
    }
}

#[test]
fn jf10_the_jobs_of_a_failed_flow_stay() {
    let stage = Stage::with_server();
    stage.create(&[template("a", "true"), template("b", "false")]);
    let mut whole = flow("test", json!([{"name": "a"}, after("b", &["a"])]));
    whole["spec"]["jobRetainPolicy"] = json!("delete");
    stage.create(&[whole]);
    stage.until_status("test", "it is over", |status| status["finishedAt"].is_string());
    assert!(["test-a", "test-b"].into_iter().all(|job| stage.job(job).is_some()));
}

#[test]
fn an_entry_is_tried_again_as_often_as_it_says() {
    let stage = Stage::new();
    // The second try finds the mark of the first one.
    let marks = stage.path("marks");
    let command = format!("[ -e {} ] && exit 0; {}; exit 1", marks.display(), stage.marks("first"));
    let retry = |max: u32| json!({"name": "a", "retry": {"maxRetries": max, "backoff": "100ms"}});
    let done = stage.run(0, &[template("a", &command), flow("again", json!([retry(2)]))]);
    assert_eq!(names(&done, "completedJobs"), ["again-a-1"], "a further try has a number: {:#}", done["status"]);
    let entry = &done["status"]["entries"][0];
    assert_eq!((&entry["tries"], &entry["restarts"]), (&json!(2), &json!(1)), "{entry:#}");

    let stage = Stage::new();
    let done = stage.run(1, &[template("a", "exit 7"), flow("never", json!([retry(1)]))]);
    assert_eq!(
        (&done["status"]["state"]["phase"], &done["status"]["entries"][0]["tries"]),
        (&json!("Failed"), &json!(2))
    );
}

#[test]
fn jf26_a_retry_runs_what_failed_and_what_follows_from_it() {
    let stage = Stage::with_server();
    for name in ["a", "b", "d", "e"] {
        stage.create(&[template(name, &stage.marks(name))]);
    }
    stage.create(&[template("c", &format!("{}; exit 1", stage.marks("c"))), diamond("test")]);
    stage.until("test", "Failed");
    let planned = stage.ends(0, &["retry", "test", "--dry-run"]);
    assert!(planned.out.contains("c") && planned.out.contains("comes after c"), "{planned}");
    assert!(planned.out.contains("2 nodes to run again, 3 results stay"), "{planned}");
    assert!(!planned.out.contains(" b:") && stage.marked().len() == 4, "nothing ran: {planned}");
    stage.replace_template(&template("c", &stage.marks("c")));
    stage.ends(0, &["retry", "test"]);
    let done = stage.until("test", "Succeed");
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-c-1", "test-d", "test-e"]);
    let mut marked = stage.marked();
    marked.sort();
    assert_eq!(marked, ["a", "b", "c", "c", "d", "e"]);
    assert_eq!(done["status"]["entries"][2]["tries"], 2);
    assert!(stage.job("test-c").is_some(), "the failed job stays");
}

#[test]
fn stopping_suspending_and_resuming_a_flow_act_on_its_jobs() {
    let stage = Stage::with_server();
    stage.create(&[template("a", &stage.waits("go")), template("b", "true")]);
    for name in ["one", "two"] {
        stage.create(&[flow(name, json!([{"name": "a"}, after("b", &["a"])]))]);
        stage.until_status(name, "a runs", |status| status["runningJobs"] == json!([format!("{name}-a")]));
    }
    stage.ends(0, &["stop", "one"]);
    let done = stage.until("one", "Failed");
    assert_eq!(names(&done, "terminatedJobs"), ["one-a"]);
    assert!(stage.job("one-b").is_none(), "nothing is made of a flow that is being ended");
    stage.ends(0, &["suspend", "two"]);
    stage.until_status("two", "its job is aborted", |status| status["unKnowJobs"] == json!(["two-a"]));
    stage.say("go");
    stage.ends(0, &["resume", "two"]);
    stage.until("two", "Succeed");
}

#[test]
fn jf22_a_flow_that_is_deleted_is_terminating_and_its_jobs_go_with_it() {
    let stage = Stage::with_server();
    let mut whole = flow("test", json!([{"name": "a"}]));
    whole["metadata"]["finalizers"] = json!(["tests/held"]);
    stage.create(&[template("a", "sleep 60"), whole]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    let path = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows/test";
    let (status, body) = stage.ask("DELETE", path, None);
    assert_eq!(status, 200, "{body:#}");
    stage.until("test", "Terminating");
    let ended = stage.until_status("test", "its job is ended", |status| status["finishedAt"].is_string());
    assert_eq!(ended["status"]["state"]["phase"], "Terminating");
    // The end of its job's pods still changes the status, so what was read may be outdated when it is written.
    eventually("the finalizer is removed", || {
        let (_, mut held) = stage.ask("GET", path, None);
        held["metadata"]["finalizers"] = json!([]);
        let (status, body) = stage.ask("PUT", path, Some(&held));
        assert!(matches!(status, 200 | 409), "{body:#}");
        status == 200
    });
    eventually("flow and job are gone", || stage.ask("GET", path, None).0 == 404 && stage.job("test-a").is_none());
}

#[test]
fn a_flow_that_is_deleted_and_applied_again_at_once_waits_for_the_names_of_its_jobs() {
    let stage = Stage::with_server();
    stage.create(&[template("a", &stage.waits("go"))]);
    let path = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows/test";
    stage.create(&[flow("test", json!([{"name": "a"}]))]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    let first = stage.job("test-a").unwrap()["metadata"]["uid"].clone();
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let (status, body) = stage.ask("DELETE", path, Some(&options));
    assert!(status < 300, "{body:#}");
    eventually("the name of the flow is free", || {
        stage.ask("POST", path.trim_end_matches("/test"), Some(&flow("test", json!([{"name": "a"}])))).0 == 201
    });
    stage.say("go");
    let done = stage.until("test", "Succeed");
    assert_ne!(stage.job("test-a").unwrap()["metadata"]["uid"], first, "{:#}", done["status"]);
}
