//! Features that are on and off, translators, and the ids of jobs.

use serde_json::{Value, json};

use crate::{
    plugins::Reply,
    stage::{DONE, Stage, submission, task_set},
};

fn other(kind: &str) -> Value {
    json!({"kind": kind, "anything": [1, "two", null]})
}

#[test]
fn pl_09_a_feature_counts_from_the_moment_it_is_turned_on_until_it_is_turned_off() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "pass", "reason": ""}));
    stage.plugin("AccessGate", "f", &address);
    stage.switch("f", false);
    let run = || {
        let id = stage.submit(&task_set("true"));
        stage.until(&id, "succeeded");
        stage.plugins.asked("gate").len()
    };
    assert_eq!(run(), 0);
    stage.switch("f", true);
    assert_eq!(run(), 1);
    stage.switch("f", false);
    assert_eq!(run(), 1);
}

#[test]
fn pl_12_13_14_and_16_selectors_choose_by_the_header_and_reserved_names_cannot_be_overridden() {
    let stage = Stage::new();
    let gate = |name: &str, selector: Value| {
        let address = stage.plugins.says(name, json!({"decision": "pass"}));
        let feature = json!({
            "name": name, "author": "test", "enabled": true,
            "jobSelector": {"conditions": [{"name": "user", "key": "user_role", "expect": "/admin|master/"}],
                "expression": "type && !user"},
            "plugins": [{"pluginType": "AccessGate", "callAddress": address, "jobSelector": selector}],
        });
        let told = stage.ask("POST", "/features", &feature);
        assert_eq!(told.code, DONE, "{}", told.msg);
    };
    let condition = |name: &str, key: &str, expect: &str| json!({"name": name, "key": key, "expect": expect});
    gate("merged", json!({"conditions": [condition("type", "type", "debug")]}));
    gate("nested", json!({"conditions": [condition("team", "team.name", "x")], "expression": "team"}));
    gate(
        "own",
        json!({"conditions": [condition("u", "userID", "u1"), condition("k", "jobKind", "TaskSet"),
        condition("n", "jobName", "a job"), condition("i", "jobID", "[0-9a-f]{36}"), condition("s", "submittedBy", "admin")],
        "expression": "u && k && n && i && s"}),
    );
    let headers = [
        json!({"type": "debug", "user_role": "guest"}),
        json!({"type": "debug", "user_role": "admin"}),
        json!({"type": "debugger"}),
        json!({"team": {"name": "x"}, "userID": "other", "jobID": "x", "jobKind": "x", "jobName": "x", "submittedBy": "x"}),
    ];
    let mut seen = Vec::new();
    for header in headers {
        let id = stage.submit_with(&task_set("true"), header);
        stage.until(&id, "succeeded");
        seen.push(["merged", "nested", "own"].map(|name| stage.plugins.asked(name).len()));
    }
    assert_eq!(seen, [[1, 0, 1], [1, 0, 2], [1, 0, 3], [1, 1, 4]]);
    let header = &stage.plugins.asked("nested")[0].body["header"];
    assert_eq!((&header["userID"], &header["submittedBy"]), (&json!("u1"), &json!("admin")));
}

#[test]
fn pl_17_18_and_20_a_kind_needs_exactly_one_translator_that_makes_a_task_set() {
    let stage = Stage::new();
    let reason = stage.fails(&other("TFJob"));
    assert!(reason.contains("TFJob"), "{reason}");
    let address = stage.plugins.says("bad", other("Other"));
    stage.plugin("TemplateTranslator", "bad", &address);
    let reason = stage.fails(&other("TFJob"));
    assert!(reason.contains("TemplateTranslator.bad.test") || reason.contains("Other"), "{reason}");
    let address = stage.plugins.says("good", task_set("true"));
    stage.plugin("TemplateTranslator", "good", &address);
    let before = stage.plugins.asked("bad").len();
    let reason = stage.fails(&other("TFJob"));
    for key in ["TemplateTranslator.bad.test", "TemplateTranslator.good.test"] {
        assert!(reason.contains(key), "{reason}");
    }
    assert_eq!((stage.plugins.asked("bad").len(), stage.plugins.asked("good").len()), (before, 0), "neither is called");
    stage.switch("bad", false);
    let id = stage.submit(&other("TFJob"));
    stage.until(&id, "succeeded");
    let asked = &stage.plugins.asked("good")[0];
    assert_eq!(asked.body["job"], other("TFJob"), "it is given what was submitted");
    assert_eq!(asked.body["factors"], json!({}));
    assert_eq!(asked.head["idempotency-key"], format!("{id}/TemplateTranslator.good.test"));
    assert_eq!(stage.get(&format!("/job/config/{id}")).payload, other("TFJob"));
    assert_eq!(stage.get(&format!("/job/taskset/{id}/")).payload["kind"], "TaskSet");
}

#[test]
fn pl_19_a_task_set_is_not_translated() {
    let stage = Stage::new();
    let address = stage.plugins.on("never", |_| Reply::Nothing);
    stage.plugin("TemplateTranslator", "t", &address);
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "succeeded");
    assert!(stage.plugins.asked("never").is_empty());
}

#[test]
fn pl_43_ids_are_drawn_or_taken_from_the_job_and_never_given_twice() {
    let stage = Stage::new();
    let id = stage.submit(&task_set("true"));
    assert_eq!(id.len(), 36);
    assert!(id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)), "{id}");
    let mut named = task_set("true");
    named["metadata"] = json!({"name": "mine", "annotations": {"note": "kept"}});
    assert_eq!(stage.submit(&named), "mine");
    stage.until("mine", "succeeded");
    let set = stage.task_set("mine").unwrap();
    let annotations = &set["metadata"]["annotations"];
    assert_eq!(annotations["note"], "kept", "the user's annotations stay");
    let header: Value = serde_json::from_str(annotations["header"].as_str().unwrap()).unwrap();
    assert_eq!(header["jobID"], "mine");
    let again = stage.ask("POST", "/job", &submission(&named, json!({})));
    assert!(["WRONG_PARAM", "UNSUPPORTED_OPERATION"].contains(&again.code.as_str()), "{}: {}", again.code, again.msg);
    assert_eq!(again.status, 200);
    let mut elsewhere = submission(&named, json!({}));
    elsewhere["jobNameSpace"] = json!("team");
    assert_eq!(stage.ask("POST", "/job", &elsewhere).code, "UNSUPPORTED_OPERATION", "an id names one job");
    let mut other = task_set("true");
    other["jobID"] = json!("by-id");
    assert_eq!(stage.submit(&other), "by-id");
}

#[test]
fn a_submission_that_is_repeated_with_its_key_makes_one_job() {
    let stage = Stage::new();
    let key = [("idempotency-key", "k1")];
    let body = submission(&task_set("true"), json!({}));
    let first = stage.ask_with("POST", "/job", &key, &body);
    let again = stage.ask_with("POST", "/job/", &[("idempotency-key", "k2")], &body);
    let second = stage.ask_with("POST", "/job", &key, &body);
    assert_eq!((first.code.as_str(), &first.payload), (DONE, &second.payload));
    assert_ne!(first.payload, again.payload);
    let changed = stage.ask_with("POST", "/job", &key, &submission(&task_set("false"), json!({})));
    assert_eq!(changed.code, "UNSUPPORTED_OPERATION", "{}", changed.msg);
    assert_eq!(stage.get("/job/count").payload, json!({"count": 2}));
}

#[test]
fn pl_45_a_job_lives_in_its_namespace_and_is_found_there() {
    let stage = Stage::new();
    let mut body = submission(&task_set("sleep 60"), json!({}));
    body["jobNameSpace"] = json!("team");
    let id = stage.ask("POST", "/job", &body).payload["jobID"].as_str().unwrap().to_owned();
    let detail = stage.until(&id, "running");
    assert_eq!(detail["platformSpecificInfo"]["namespace"], "team");
    let path = format!("/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/team/tasksets/{id}");
    assert!(stage.object(&path).is_some());
    assert_eq!(stage.ask("PUT", &format!("/job/stop/{id}"), &Value::Null).code, DONE);
    stage.until(&id, "stopped");
    assert_eq!(stage.ask("PUT", &format!("/job/stop/{id}"), &Value::Null).code, DONE, "it is stopped already");
}
