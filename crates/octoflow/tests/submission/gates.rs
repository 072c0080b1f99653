//! Factors, gates, stopping and resuming.

use serde_json::{Value, json};

use crate::{
    plugins::Reply,
    stage::{DONE, Stage, task_set},
};

fn resume(stage: &Stage, id: &str, query: &str) -> String {
    stage.ask("PUT", &format!("/job/resume/{id}{query}"), &json!({"jobID": id, "reason": "go on"})).code
}

#[test]
fn pl_21_factors_come_in_order_and_the_kind_in_the_header_stays() {
    let stage = Stage::new();
    let translator = stage.plugins.says("translate", task_set("true"));
    stage.plugin("TemplateTranslator", "t", &translator);
    for (name, advice) in [("f1", "10"), ("f2", "4"), ("f3", "1")] {
        let address = stage.plugins.says(name, json!({"topic": "priority", "advice": advice, "reason": name}));
        stage.plugin("FactorGenerator", name, &address);
    }
    let address = stage.plugins.says("f4", json!({"topic": "other", "advice": "", "reason": "nothing"}));
    stage.plugin("FactorGenerator", "f4", &address);
    let address = stage.plugins.on("look", |asked| Reply::Json(asked.body["job"].clone()));
    stage.plugin("TemplateDecorator", "d", &address);
    let id = stage.submit(&json!({"kind": "TFJob"}));
    stage.until(&id, "succeeded");
    let body = &stage.plugins.asked("look")[0].body;
    let advice: Vec<&str> =
        body["factors"]["priority"].as_array().unwrap().iter().map(|one| one["advice"].as_str().unwrap()).collect();
    assert_eq!(advice, ["10", "4", "1"]);
    assert!(body["factors"].get("other").is_none(), "{}", body["factors"]);
    assert_eq!((&body["header"]["jobKind"], &body["job"]["kind"]), (&json!("TFJob"), &json!("TaskSet")));
}

#[test]
fn pl_22_a_suspended_job_goes_on_with_the_next_gate_and_is_resumed_once() {
    let stage = Stage::new();
    for (name, decision) in [("g1", "pass"), ("g2", "suspend"), ("g3", "stop")] {
        let address = stage.plugins.says(name, json!({"decision": decision, "reason": format!("says {name}")}));
        stage.plugin("AccessGate", name, &address);
    }
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "suspended");
    assert!(stage.trace(&id)["message"].as_str().unwrap().contains("says g2"));
    assert!(stage.plugins.asked("g3").is_empty());
    assert_eq!(resume(&stage, &id, ""), DONE);
    stage.until(&id, "stopped");
    assert_eq!(["g1", "g2", "g3"].map(|name| stage.plugins.asked(name).len()), [1, 1, 1]);
    assert_eq!(resume(&stage, &id, ""), "UNSUPPORTED_OPERATION");
    assert!(stage.task_set(&id).is_none());
    assert!(stage.trace(&id)["message"].as_str().unwrap().contains("says g3"));
}

#[test]
fn a_gate_can_be_asked_again_and_a_running_job_is_not_resumed() {
    let stage = Stage::new();
    let address = stage.plugins.says("g", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("sleep 60"));
    stage.until(&id, "suspended");
    assert_eq!(resume(&stage, &id, "?recheck=true"), DONE);
    crate::stage::eventually("it is asked again", || stage.plugins.asked("g").len() == 2);
    stage.until(&id, "suspended");
    stage.plugins.says("g", json!({"decision": "pass"}));
    crate::stage::eventually("it is let through", || {
        resume(&stage, &id, "/?recheck=true") == DONE || stage.job(&id)["job"]["state"] == "running"
    });
    stage.until(&id, "running");
    assert_eq!(resume(&stage, &id, ""), "UNSUPPORTED_OPERATION");
    let keys: Vec<String> =
        stage.plugins.asked("g").iter().map(|asked| asked.head["idempotency-key"].clone()).collect();
    assert_ne!(keys[0], keys[1], "another question has another key");
}

#[test]
fn pl_23_what_is_no_decision_fails_the_job() {
    let stage = Stage::new();
    let address = stage.plugins.says("g", json!({"decision": "maybe", "reason": "x"}));
    stage.plugin("AccessGate", "g", &address);
    let reason = stage.fails(&task_set("true"));
    assert!(reason.contains("maybe") && reason.contains("AccessGate.g.test"), "{reason}");
}

#[test]
fn pl_25_only_a_suspended_job_is_resumed() {
    let stage = Stage::new();
    let running = stage.submit(&task_set("sleep 60"));
    stage.until(&running, "running");
    assert_eq!(resume(&stage, &running, ""), "UNSUPPORTED_OPERATION");
    let done = stage.submit(&task_set("true"));
    stage.until(&done, "succeeded");
    assert_eq!(resume(&stage, &done, ""), "UNSUPPORTED_OPERATION");
    assert_eq!(stage.ask("PUT", &format!("/job/stop/{done}"), &Value::Null).code, "UNSUPPORTED_OPERATION");
    assert_eq!(resume(&stage, "nobody", ""), "OPERATION_TARGET_NOT_FOUND");
    let both = stage.ask("PUT", &format!("/job/stop/{running}"), &json!({"jobID": done, "reason": "x"}));
    assert_eq!(both.code, "WRONG_PARAM", "the ids differ: {}", both.msg);
    let by_body = stage.ask("PUT", "/job/stop", &json!({"jobID": running, "reason": "no longer wanted"}));
    assert_eq!(by_body.code, DONE, "{}", by_body.msg);
    stage.until(&running, "stopped");
    assert!(stage.trace(&running).to_string().contains("no longer wanted"), "{:#}", stage.trace(&running));
}

#[test]
fn a_suspended_job_is_stopped_where_it_is() {
    let stage = Stage::new();
    let address = stage.plugins.says("g", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "suspended");
    assert_eq!(stage.ask("PUT", &format!("/job/stop/{id}"), &json!({"reason": "enough"})).code, DONE);
    let detail = stage.until(&id, "stopped");
    assert_eq!(detail["tasks"][0]["state"], "stopped", "{detail:#}");
    assert!(stage.task_set(&id).is_none());
}
