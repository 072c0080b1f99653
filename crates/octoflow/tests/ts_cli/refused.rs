//! What is refused before anything is stored, with the place of the mistake.

use serde_json::{Value, json};

use crate::stage::{Stage, role, set, shows, with};

/// Refused by `run` and by `lint` alike, with all of these words.
#[track_caller]
fn refused(manifest: &Value, words: &[&str]) {
    let stage = Stage::new();
    let file = stage.file("bad.yaml", manifest.to_string());
    let said = stage.ends(6, &["run", &file]);
    shows(&said.err, words);
    assert!(!stage.data_dir().exists(), "nothing is stored");
    let said = stage.ends(6, &["lint", &file]);
    shows(&said.out, words);
    let told = stage.ends(6, &["lint", &file, "-o", "json"]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert!(told.as_array().is_some_and(|all| !all.is_empty()), "{told}");
}

#[test]
fn ts02_two_roles_of_one_name() {
    refused(
        &set("twice", json!([role("w", 1, "true"), role("w", 1, "true")])),
        &["two roles are called 'w'", "spec.roles[1].name"],
    );
}

#[test]
fn ts03_policies_that_make_no_sense() {
    let policy = |most: i64, least: i64| {
        let policy = json!({"completionPolicy": {"maxFailed": most, "minSucceeded": least}});
        set("policy", json!([with(role("w", 2, "true"), policy)]))
    };
    refused(&policy(1, 0), &["minSucceeded", "spec.roles[0].completionPolicy.minSucceeded"]);
    refused(&policy(3, 1), &["maxFailed 3 is more than its 2 replicas", "spec.roles[0].completionPolicy.maxFailed"]);
    refused(&policy(1, 3), &["minSucceeded 3 is more than its 2 replicas", "completionPolicy.minSucceeded"]);
    refused(&policy(-2, 1), &["spec.roles[0].completionPolicy.maxFailed"]);
}

#[test]
fn ts04_no_tolerance_means_that_the_first_failure_counts() {
    let stage = Stage::new();
    let none = json!({"completionPolicy": {"maxFailed": 0, "minSucceeded": 2}});
    let file = stage.set("strict", json!([with(role("w", 2, "exit $TASKROLE_REPLICA_INDEX"), none)]));
    let said = stage.ends(1, &["run", &file]);
    shows(&said.err, &["maxFailed 0 is read as 1", "w-1 started"]);
    let good = stage.set(
        "well",
        json!([with(role("w", 2, "true"), json!({"completionPolicy": {"maxFailed": 0, "minSucceeded": 2}}))]),
    );
    stage.ends(0, &["run", &good]);
}

#[test]
fn ts31_names_are_plain() {
    let named = |name: &str| set(name, json!([role("w", 1, "true")]));
    for name in ["my-job", "UPPER", &"x".repeat(64)] {
        refused(&named(name), &["metadata.name"]);
    }
    refused(&set("ok", json!([role("a-b", 1, "true")])), &["roles[0].name 'a-b' is invalid", "spec.roles[0].name"]);
    let stage = Stage::new();
    let longest = "x1".repeat(31) + "y";
    assert_eq!(stage.run(0, &stage.set(&longest, json!([role("w", 1, "true")])))["metadata"]["name"], longest);
}

#[test]
fn ts33_a_task_set_without_roles() {
    refused(&set("empty", json!([])), &["a TaskSet needs at least one role", "spec.roles"]);
}

#[test]
fn all_problems_come_at_once_and_near_names_are_suggested() {
    let mut manifest = set("many", json!([role("w", 1, "true")]));
    manifest["spec"]["roles"][0]["replcas"] = json!(2);
    manifest["spec"]["roles"][0]["eventPolicy"] = json!([{"event": "RoleFaild", "action": "NoAction"}]);
    manifest["spec"]["roles"][0]["dependsOn"] = json!(["ww"]);
    refused(&manifest, &["did you mean `replicas`"]);
    refused(&manifest, &["RoleFaild"]);
}

#[test]
fn parameters_are_not_for_task_sets() {
    let stage = Stage::new();
    let file = stage.set("plain", json!([role("w", 1, "true")]));
    shows(&stage.ends(2, &["run", &file, "-p", "a=b"]).err, &["a TaskSet has neither parameters nor an entrypoint"]);
    shows(
        &stage.ends(0, &["plan", &file]).out,
        &["plain", "1 × spec.roles[0].template.spec in queue default", "it can run"],
    );
    let mut larger = role("w", 1, "true");
    larger["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    let large = stage.set("large", json!([larger]));
    let never = stage.ends(6, &["plan", &large, "--node-capacity", "cpu=1"]);
    shows(&never.err, &["OF1086"]);
}
