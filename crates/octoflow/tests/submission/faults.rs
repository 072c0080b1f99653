//! Plugins that fail in every way: what the job says then, and that others go on meanwhile.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    plugins::Reply,
    stage::{DONE, Stage, submission, task_set},
};

/// Registers a gate that is tried once and waited for a second, for jobs with this name in the header.
fn gate(stage: &Stage, name: &str, plugin: impl Fn(&crate::plugins::Asked) -> Reply + Send + Sync + 'static) {
    let address = stage.plugins.on(name, plugin);
    let feature = json!({
        "name": name, "author": "test", "enabled": true,
        "jobSelector": {"conditions": [{"name": "case", "key": "case", "expect": name}], "expression": "case"},
        "plugins": [{"pluginType": "AccessGate", "callAddress": address, "timeoutSeconds": 1, "tries": 1}],
    });
    let told = stage.ask("POST", "/features", &feature);
    assert_eq!(told.code, DONE, "{}", told.msg);
}

#[test]
fn pl_33_a_plugin_that_fails_fails_its_job_with_the_reason_and_nobody_else() {
    let stage = Stage::new();
    gate(&stage, "status", |_| Reply::Status(500, json!({"secret": "not told"})));
    gate(&stage, "hang", |_| Reply::Late(Duration::from_secs(20), json!({"decision": "pass"})));
    gate(&stage, "text", |_| Reply::Text("decision: pass".to_owned()));
    gate(&stage, "shape", |_| Reply::Json(json!(["pass"])));
    gate(&stage, "gone", |_| Reply::Nothing);
    gate(&stage, "large", |_| Reply::Json(json!({"decision": "pass", "reason": "x".repeat(8 << 20)})));
    let address = stage.plugins.says("target", json!({"decision": "pass"}));
    gate(&stage, "elsewhere", move |_| Reply::Elsewhere(address.clone()));
    let cases = ["status", "hang", "text", "shape", "gone", "large", "elsewhere"];
    let began = Instant::now();
    let ids: Vec<String> =
        cases.iter().map(|case| stage.submit_with(&task_set("true"), json!({"case": case}))).collect();
    let free = stage.submit(&task_set("true"));
    stage.until(&free, "succeeded");
    for (case, id) in cases.iter().zip(&ids) {
        stage.until(id, "failed");
        let message = stage.trace(id)["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("AccessGate.{case}.test")), "{case}: {message}");
        assert!(!message.contains("not told"), "the body is nobody's to read: {message}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "nobody waited for the one that hangs");
    let message = |at: usize| stage.trace(&ids[at])["message"].to_string();
    assert!(message(0).contains("500"), "{}", message(0));
    assert!(message(1).contains("1 s") || message(1).contains("time"), "{}", message(1));
    assert!(message(6).contains("302"), "{}", message(6));
    assert!(stage.plugins.asked("target").is_empty(), "redirects are never followed");
}

#[test]
fn a_call_that_was_lost_is_tried_again_with_the_same_key() {
    let stage = Stage::new();
    let times = std::sync::atomic::AtomicUsize::new(0);
    let address = stage.plugins.on("gate", move |_| match times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => Reply::Nothing,
        _ => Reply::Json(json!({"decision": "pass"})),
    });
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "succeeded");
    let asked = stage.plugins.asked("gate");
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].head["idempotency-key"], asked[1].head["idempotency-key"]);
    assert_eq!(stage.trace(&id)["trace"][0]["tries"], 2);
}

#[test]
fn a_child_that_is_refused_fails_the_job_with_all_problems() {
    let stage = Stage::new();
    let mut broken = task_set("true");
    broken["spec"]["roles"][0]["replicas"] = json!("many");
    broken["spec"]["roles"][0]["template"]["spec"]["containers"][0]["command"] = json!(7);
    let reason = stage.fails(&broken);
    assert!(reason.contains("replicas") && reason.contains("command"), "{reason}");
}

#[test]
fn a_dry_run_tells_which_plugins_are_met_and_stores_nothing() {
    let stage = Stage::new();
    gate(&stage, "yes", |_| Reply::Nothing);
    let planned = stage.ask("POST", "/job?dryRun=true", &submission(&task_set("true"), json!({"case": "yes"})));
    assert_eq!(planned.code, DONE, "{}", planned.msg);
    let stages = planned.payload["stages"].as_array().unwrap();
    let gates = stages.iter().find(|stage| stage["pluginType"] == "AccessGate").unwrap();
    let plugin = &gates["plugins"][0];
    assert_eq!((&plugin["key"], &plugin["called"]), (&json!("AccessGate.yes.test"), &json!(true)));
    assert_eq!(plugin["conditions"][0]["holds"], true);
    let other = stage.ask("POST", "/job/?dryRun=true", &submission(&json!({"kind": "TFJob"}), json!({})));
    assert_eq!(other.payload["stages"][2]["plugins"][0]["called"], false, "{:#}", other.payload);
    assert!(!other.payload["problems"].as_array().unwrap().is_empty());
    assert_eq!(stage.get("/job/count").payload["count"], 0);
    assert!(stage.plugins.asked("yes").is_empty());
    assert_eq!(stage.ask("POST", "/job?dryRun=true", &Value::Null).code, "LACK_OF_PARAM");
}
