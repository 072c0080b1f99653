//! kill -9 of the real server at each step of the walk: a plugin whose answer was kept is not asked again, one whose
//! answer was not is asked again with its key, and one run comes out.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    plugins::Reply,
    stage::{DONE, Stage, eventually, task_set},
};

const STEPS: [(&str, &str); 5] = [
    ("TemplateTranslator", "translate"),
    ("FactorGenerator", "factor"),
    ("AccessGate", "gate"),
    ("TemplateDecorator", "decorate"),
    ("SchedulerBinder", "bind"),
];

/// A stage with a plugin for each step, one of which holds its first answer back.
fn stage(slow: &str, script: &str) -> Stage {
    let stage = Stage::new();
    for (plugin_type, name) in STEPS {
        let (held, script) = (Arc::new(AtomicBool::new(name == slow)), script.to_owned());
        let address = stage.plugins.on(name, move |asked| {
            let answer = match name {
                "translate" => task_set(&script),
                "factor" => json!({"topic": "t", "advice": "1"}),
                "gate" => json!({"decision": "pass"}),
                _ => asked.body["job"].clone(),
            };
            if held.swap(false, Ordering::SeqCst) {
                return Reply::Late(Duration::from_secs(3), answer);
            }
            Reply::Json(answer)
        });
        stage.plugin(plugin_type, name, &address);
    }
    stage
}

#[test]
fn a_server_killed_while_a_plugin_is_asked_asks_it_again_and_no_other() {
    for (at, (_, slow)) in STEPS.into_iter().enumerate() {
        let mut stage = stage(slow, "true");
        let id = stage.submit(&json!({"kind": "TFJob"}));
        eventually("the slow plugin is asked", || !stage.plugins.asked(slow).is_empty());
        stage.kill_and_restart();
        stage.until(&id, "succeeded");
        for (other, (_, name)) in STEPS.into_iter().enumerate() {
            let asked = stage.plugins.asked(name);
            let keys: BTreeSet<&str> = asked.iter().map(|asked| asked.head["idempotency-key"].as_str()).collect();
            assert_eq!(keys.len(), 1, "{name} has one key");
            let expected = if other == at { 2 } else { 1 };
            assert_eq!(asked.len(), expected, "{name}, killed in {slow}");
        }
    }
}

#[test]
fn a_server_killed_around_the_hand_over_makes_one_run_that_runs_once() {
    for pause in [0, 5, 15, 30, 60, 120] {
        let mut stage = stage("none", "true");
        let marks = stage.path("marks");
        let id = stage.submit(&task_set(&format!("echo x >> {marks}; sleep 0.3")));
        thread::sleep(Duration::from_millis(pause));
        stage.kill_and_restart();
        stage.until(&id, "succeeded");
        let list = stage.object("/apis/octopus.openi.pcl.cn/v1alpha1/tasksets").unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "one run, killed after {pause} ms");
        let ran = std::fs::read_to_string(&marks).unwrap();
        assert_eq!(ran.lines().count(), 1, "killed after {pause} ms");
    }
}

#[test]
fn what_a_gate_held_is_still_held_after_a_kill_and_is_resumed() {
    let mut stage = Stage::new();
    let address = stage.plugins.says("g", json!({"decision": "suspend", "reason": "wait"}));
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "suspended");
    stage.kill_and_restart();
    assert_eq!(stage.job(&id)["job"]["state"], "suspended");
    assert_eq!(stage.ask("PUT", &format!("/job/resume/{id}"), &Value::Null).code, DONE);
    stage.kill_and_restart();
    stage.until(&id, "succeeded");
    assert_eq!(stage.plugins.asked("g").len(), 1);
}

#[test]
fn a_quota_counts_whom_it_let_pass_before_the_server_was_killed() {
    let mut stage = Stage::new();
    let quota = json!({"maxRunningPerUser": 1, "recheckSeconds": 1});
    stage.feature("q", json!([{"pluginType": "AccessGate", "callAddress": "builtin:quota", "options": quota}]));
    let slow = stage.plugins.on("slow", |asked| Reply::Late(Duration::from_secs(2), asked.body["job"].clone()));
    stage.plugin("TemplateDecorator", "slow", &slow);
    let first = stage.submit(&task_set("true"));
    eventually("the first is past the gate", || !stage.plugins.asked("slow").is_empty());
    stage.kill_and_restart();
    let second = stage.submit(&task_set("true"));
    stage.until(&second, "suspended");
    let reason = stage.trace(&second)["message"].to_string();
    assert!(reason.contains("user u1 has 1 jobs running"), "{reason}");
    stage.until(&first, "succeeded");
    eventually("its place is free", || stage.job(&second)["job"]["state"] == "succeeded");
}

#[test]
fn pl_35_a_run_that_goes_while_the_server_is_down_leaves_its_job_stopped() {
    let mut stage = Stage::new();
    let id = stage.submit(&task_set("sleep 60"));
    stage.until(&id, "running");
    let address = stage.kill();
    let said = stage.octoflow(&["delete", &format!("taskset/{id}"), "--force"]);
    assert_eq!(said.code, 0, "{said}");
    stage.start_again(&address);
    stage.until(&id, "stopped");
    assert!(stage.task_set(&id).is_none());
}

#[test]
fn pl_35_a_run_that_somebody_deletes_leaves_its_job_stopped() {
    let mut stage = Stage::new();
    let id = stage.submit(&task_set("sleep 60"));
    stage.until(&id, "running");
    let said = stage.octoflow(&["delete", &format!("taskset/{id}"), "--force"]);
    assert_eq!(said.code, 0, "{said}");
    stage.kill_and_restart();
    stage.until(&id, "stopped");
}
