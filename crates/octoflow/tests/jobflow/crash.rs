//! Kill -9 of the server at twenty points of a flow: every job is made and run once, and the flow ends as if nothing had been.

use std::{collections::BTreeSet, thread, time::Duration};

use serde_json::{Value, json};

use crate::stage::{Stage, after, flow, names, template};

/// As many as the kills take: some stages of the flow see several kills.
const LAYERS: usize = 30;
const KILLS: usize = 20;

#[test]
fn a_flow_whose_server_is_killed_twenty_times_makes_every_job_once() {
    let mut stage = Stage::with_server();
    let mut entries: Vec<Value> = Vec::new();
    for layer in 0..LAYERS {
        let name = |of: usize, side: &str| format!("{side}{of}");
        for side in ["l", "r"] {
            let command = format!("{}; sleep 0.12", stage.marks(&name(layer, side)));
            stage.create(&[template(&name(layer, side), &command)]);
            let before: Vec<String> =
                (layer > 0).then(|| ["l", "r"].map(|side| name(layer - 1, side))).into_iter().flatten().collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let mut entry = after(&name(layer, side), &before);
            if before.is_empty() {
                entry = json!({"name": name(layer, side)});
            }
            entries.push(entry);
        }
    }
    stage.create(&[flow("test", json!(entries))]);
    let mut completed = 0;
    let mut stages = BTreeSet::new();
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..KILLS {
        // Irregular but repeatable distances between the kills.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        thread::sleep(Duration::from_millis((state >> 33) % 90));
        let open = stage.flow("test");
        assert!(open["status"]["finishedAt"].is_null(), "it is open when its server is killed: {:#}", open["status"]);
        stages.insert(open["status"]["entries"].to_string());
        stage.kill_and_restart();
        let open = stage.flow("test");
        let now = names(&open, "completedJobs").len();
        assert!(now >= completed, "what was completed stays so: {:#}", open["status"]);
        completed = now;
    }
    assert!(stages.len() >= KILLS / 2, "the kills came at {} different stages", stages.len());
    let done = stage.until("test", "Succeed");
    assert_eq!(names(&done, "completedJobs").len(), 2 * LAYERS);
    let listed = done["status"]["entries"].as_array().unwrap();
    assert!(listed.iter().all(|entry| entry["tries"] == 1), "one try each: {listed:?}");
    let mut marked = stage.marked();
    marked.sort();
    let mut expected: Vec<String> =
        (0..LAYERS).flat_map(|layer| ["l", "r"].map(|side| format!("{side}{layer}"))).collect();
    expected.sort();
    assert_eq!(marked, expected, "every pod ran once");
}
