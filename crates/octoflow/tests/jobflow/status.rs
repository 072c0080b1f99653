//! What a flow and its jobs show of themselves.

use serde_json::{Value, json};

use crate::stage::{Stage, after, flow, names, task, template, template_of};

#[test]
fn jf16_a_job_shows_where_it_comes_from() {
    let stage = Stage::with_server();
    let mut from = template("a", "true");
    from["metadata"]["labels"] = json!({"mine": "yes"});
    stage.create(&[from, flow("test", json!([{"name": "a"}]))]);
    let whole = stage.until("test", "Succeed");
    let job = stage.job("test-a").unwrap();
    let marks = json!({"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.test"});
    assert_eq!((&job["metadata"]["labels"], &job["metadata"]["annotations"]), (&marks, &marks), "{job:#}");
    assert_eq!(
        job["metadata"]["ownerReferences"],
        json!([{"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "name": "test", "uid": whole["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true}])
    );
    let (_, from) = stage.ask("GET", "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates/a", None);
    assert_eq!(from["status"]["jobDependsOnList"], json!(["test-a"]));
    stage.delete_job("test-a");
    let (_, from) = stage.ask("GET", "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates/a", None);
    assert_eq!(from["status"]["jobDependsOnList"], json!([]), "it is true while jobs come and go");
}

#[test]
fn jf17_the_status_of_a_running_flow_tells_of_every_job() {
    let stage = Stage::with_server();
    let two = template_of("a", json!({"tasks": [task("main", 2, &stage.waits("go"))]}));
    stage.create(&[two, template("b", "true"), flow("test", json!([{"name": "a"}, after("b", &["a"])]))]);
    let open = stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    let conditions = &open["status"]["conditions"];
    let a = &conditions["test-a"];
    assert_eq!(a["phase"], "Running");
    assert!(a["createTime"].is_string() && a["runningDuration"].is_string(), "{a:#}");
    assert_eq!(a["taskStatusCount"], json!({"main": {"phase": {"Running": 2}}}));
    let b = &conditions["test-b"];
    assert_eq!((&b["phase"], &b["createTime"]), (&json!("waiting"), &Value::Null), "{b:#}");
    assert_eq!(open["status"]["jobStatusList"].as_array().unwrap().len(), 1);
    stage.say("go");
    let done = stage.until("test", "Succeed");
    assert_eq!(done["status"]["conditions"]["test-a"]["taskStatusCount"], json!({"main": {"phase": {"Succeeded": 2}}}));
    for list in ["pendingJobs", "runningJobs", "failedJobs", "terminatedJobs", "unKnowJobs"] {
        assert_eq!(names(&done, list), Vec::<&str>::new(), "{list}");
    }
}

#[test]
fn jf18_every_change_of_phase_is_in_the_history_and_leaves_no_gap() {
    let stage = Stage::with_server();
    let once = format!("[ -e {} ] && exit 0; {}; exit 1", stage.path("marks").display(), stage.marks("first"));
    let spec = json!({"policies": [{"event": "PodFailed", "action": "RestartJob"}], "tasks": [task("main", 1, &once)]});
    stage.create(&[template_of("a", spec), flow("test", json!([{"name": "a"}]))]);
    let done = stage.until("test", "Succeed");
    let job = &done["status"]["jobStatusList"][0];
    let histories = job["runningHistories"].as_array().unwrap();
    let states: Vec<&str> = histories.iter().map(|part| part["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["Pending", "Running", "Restarting", "Pending", "Running", "Completed"], "{job:#}");
    for (one, next) in histories.iter().zip(&histories[1..]) {
        assert_eq!(one["endTimestamp"], next["startTimestamp"], "{job:#}");
    }
    assert!(histories.iter().all(|part| part["endTimestamp"].is_string()), "{job:#}");
    assert_eq!((&job["restartCount"], &job["state"]), (&json!(1), &json!("Completed")));
}

#[test]
fn a_child_is_not_of_another_flow_with_the_same_template() {
    let stage = Stage::with_server();
    stage.create(&[template("a", &stage.waits("go"))]);
    stage.create(&["one", "two"].map(|name| flow(name, json!([{"name": "a"}]))));
    stage.until_status("one", "it runs", |status| status["runningJobs"] == json!(["one-a"]));
    stage.until_status("two", "it runs", |status| status["runningJobs"] == json!(["two-a"]));
    stage.ends(0, &["stop", "one-a"]);
    stage.until("one", "Failed");
    assert_eq!(stage.flow("two")["status"]["runningJobs"], json!(["two-a"]));
    stage.say("go");
    stage.until("two", "Succeed");
}
