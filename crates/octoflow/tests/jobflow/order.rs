//! The order in which jobs are made.

use serde_json::json;

use crate::stage::{Stage, diamond, flow, names, path_of, template};

#[test]
fn jf01_the_jobs_of_the_first_example_run_in_their_order() {
    let stage = Stage::new();
    let mut objects: Vec<_> = ["a", "b", "e"].map(|name| template(name, &stage.marks(name))).into();
    // Each of the two waits for the other one, so they end only if they run together.
    for (name, other) in [("c", "d"), ("d", "c")] {
        let command = format!("touch {}; {}; {}", stage.path(name).display(), stage.waits(other), stage.marks(name));
        objects.push(template(name, &command));
    }
    objects.push(diamond("test"));
    let done = stage.run(0, &objects);
    assert_eq!(done["status"]["state"]["phase"], "Succeed", "{:#}", done["status"]);
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-c", "test-d", "test-e"]);
    let mut marked = stage.marked();
    marked[2..4].sort();
    assert_eq!(marked, ["a", "b", "c", "d", "e"]);
    // Each is a run of its own.
    let listed = stage.ends(0, &["list", "-o", "name"]).out;
    assert_eq!(listed.lines().count(), 6, "{listed}");
}

#[test]
fn jf02_all_entries_without_targets_are_made_at_once() {
    let stage = Stage::with_server();
    let waits = stage.waits("go");
    stage.create(&[template("a", &waits), template("b", &waits)]);
    stage.create(&[flow("two", json!([{"name": "a"}, {"name": "b"}]))]);
    let made = stage.until_status("two", "both jobs run", |status| status["runningJobs"] == json!(["two-a", "two-b"]));
    assert_eq!(made["status"]["state"]["phase"], "Running");
    stage.say("go");
    stage.until("two", "Succeed");
}

#[test]
fn jf05_both_groups_mean_the_same_objects() {
    let stage = Stage::with_server();
    let first = "/apis/batch.volcano.sh/v1alpha1/namespaces/default";
    let mut one = template("a", "true");
    one["apiVersion"] = json!("batch.volcano.sh/v1alpha1");
    let (status, body) = stage.ask("POST", &format!("{first}/jobtemplates"), Some(&one));
    assert_eq!(status, 201, "{body:#}");
    let mut whole = flow("test", json!([{"name": "a"}]));
    whole["apiVersion"] = json!("batch.volcano.sh/v1alpha1");
    whole["spec"]["JobRetainPolicy"] = json!("retain");
    let (status, body) = stage.ask("POST", &format!("{first}/jobflows"), Some(&whole));
    assert_eq!((status, &body["apiVersion"]), (201, &whole["apiVersion"]), "{body:#}");
    let there = stage.until("test", "Succeed");
    assert_eq!(
        (&there["metadata"]["uid"], &there["apiVersion"]),
        (&body["metadata"]["uid"], &json!("flow.volcano.sh/v1alpha1"))
    );
    let (status, found) = stage.ask("GET", &format!("{}/a", path_of(&one)), None);
    assert_eq!((status, &found["apiVersion"]), (200, &json!("flow.volcano.sh/v1alpha1")), "{found:#}");
    // A second one of the same name is the same object.
    let (status, body) = stage.ask("POST", path_of(&whole), Some(&flow("test", json!([{"name": "a"}]))));
    assert_eq!((status, &body["reason"]), (409, &json!("AlreadyExists")), "{body:#}");
}

#[test]
fn any_of_several_targets_is_enough_where_it_says_so() {
    let stage = Stage::with_server();
    stage.create(&[template("slow", &stage.waits("go")), template("fast", "true"), template("next", "true")]);
    let next = json!({"name": "next", "dependsOn": {"targets": ["slow", "fast"], "strategy": "any"}});
    stage.create(&[flow("any", json!([{"name": "slow"}, {"name": "fast"}, next]))]);
    let open =
        stage.until_status("any", "next is done", |status| status["completedJobs"] == json!(["any-fast", "any-next"]));
    assert_eq!(names(&open, "runningJobs"), ["any-slow"]);
    stage.say("go");
    stage.until("any", "Succeed");
}
