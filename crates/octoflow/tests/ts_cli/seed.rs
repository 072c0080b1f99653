//! The examples of the seed, word for word but for how long they sleep. It lies beside the checkout.

#![expect(clippy::print_stderr, reason = "a skipped seed is told loudly")]

use std::{fs, path::Path};

use serde_json::json;

use crate::stage::{Stage, replica, shows};

/// The manifests of the seed's text; none when it is not there, which CI does not forgive.
fn examples() -> Option<Vec<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds/002_21392706dddf745a.txt");
    let Ok(text) = fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "the seed is required in CI: {} is missing", file.display());
        eprintln!("SKIPPED: the seed is not at {}", file.display());
        return None;
    };
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole = blocks.filter(|block| block.contains("kind: TaskSet")).map(|block| {
        let block = block.replace("sleep 100;", "sleep 60;").replace("sleep 30;", "sleep 1;");
        assert!(block.contains("sleep 1;"), "the seed sleeps as it used to: {block}");
        block
    });
    Some(whole.collect())
}

#[test]
fn ts01_the_first_example_succeeds_with_its_workers() {
    let Some(examples) = examples() else { return };
    let stage = Stage::new();
    let object = stage.run(0, &stage.file("first.yaml", &examples[0]));
    let status = &object["status"];
    assert_eq!((&status["phase"], &status["state"]), (&json!("TaskSetCompleted"), &json!("Succeeded")), "{status:#}");
    assert!(status["startAt"].is_string() && status["finishAt"].is_string(), "{status:#}");
    assert_eq!(status["roleStatus"][1]["state"], "Succeeded", "{status:#}");
    let ps = replica(&object, 0, 0);
    assert_eq!((&ps["stopped"], &ps["phase"]), (&json!(true), &json!("TaskRoleReplicaCompleted")), "{ps:#}");
    assert_eq!(replica(&object, 1, 0)["podName"], "tensorflowdemo-worker-0-0-0");
}

#[test]
fn the_second_example_starts_as_a_gang_and_its_pod_group_is_kept() {
    let Some(examples) = examples() else { return };
    let stage = Stage::new();
    let file = stage.file("second.yaml", &examples[1]);
    let said = stage.ends(0, &["run", &file, "--timeout", "60s"]);
    // minSucceeded 2 and maxFailed 3 of 3: one success and two failures would decide nothing.
    shows(&said.err, &["warning[OF1080]", "TaskSet tensorflowdemo started", "role worker succeeded"]);
    assert!(!said.err.contains("is not loaded"), "the PodGroup of the same file is found: {said}");
    // The group of an earlier run is found too.
    let alone = examples[1].split("---\n").nth(1).unwrap();
    let again = stage.file("again.yaml", alone);
    let said = stage.ends(0, &["run", &again, "--name", "again", "--dry-run"]);
    assert!(!said.err.contains("is not loaded"), "{said}");
}
