//! The commands of the pipeline, as somebody types them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Said, Stage, eventually, task_set};

#[track_caller]
fn done(said: Said) -> String {
    assert_eq!(said.code, 0, "{said}");
    said.out
}

#[test]
fn features_plugins_and_jobs_from_the_command_line() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "suspend", "reason": "not yet"}));
    let decorate = stage.plugins.on("decorate", |asked| crate::plugins::Reply::Json(asked.body["job"].clone()));
    let feature = json!({"name": "f", "author": "ann", "jobSelector": {"expression": "*"},
        "plugins": [{"pluginType": "AccessGate", "callAddress": address},
            {"pluginType": "TemplateDecorator", "callAddress": decorate}]});
    let file = stage.file("feature.json", feature.to_string());
    let job = stage.file("job.json", task_set("echo hello from inside").to_string());
    let tried = done(stage.octoflow(&["feature", "test", &file, "--job", &job]));
    assert!(tried.contains("AccessGate.f.ann: called"), "{tried}");
    let called = done(stage.octoflow(&["feature", "test", &file, "--job", &job, "--call"]));
    assert!(called.contains("not yet"), "{called}");
    assert_eq!(stage.octoflow(&["feature", "get", "f"]).code, 3, "a trial stores nothing");

    assert!(done(stage.octoflow(&["feature", "register", &file])).contains("not enabled"));
    let object = json!({"apiVersion": "octoflow.io/v1alpha1", "kind": "Feature", "metadata": {"name": "g"},
        "spec": {"author": "bob", "jobSelector": {"expression": "*"},
            "plugins": [{"pluginType": "AccessGate", "callAddress": address}]}});
    done(stage.octoflow(&["feature", "register", &stage.file("g.json", object.to_string())]));
    done(stage.octoflow(&["plugin", "order", "AccessGate.g.bob", "AccessGate.f.ann"]));
    let list: Value =
        serde_json::from_str(&done(stage.octoflow(&["plugin", "list", "AccessGate", "-o", "json"]))).unwrap();
    assert_eq!((&list[0]["key"], &list[1]["key"]), (&json!("AccessGate.g.bob"), &json!("AccessGate.f.ann")));
    done(stage.octoflow(&["feature", "enable", "f"]));
    assert!(done(stage.octoflow(&["feature", "list"])).contains("true"));
    let dry = done(stage.octoflow(&["feature", "test", "--job", &job]));
    assert!(dry.contains("AccessGate.f.ann: called") && dry.contains("AccessGate.g.bob: not enabled"), "{dry}");

    let id = done(stage.octoflow(&["job", "submit", "-f", &job, "--header", "tier=gold"])).trim().to_owned();
    stage.until(&id, "suspended");
    assert!(done(stage.octoflow(&["get", &id])).contains("not yet"));
    assert!(done(stage.octoflow(&["explain", &id])).contains("not yet"));
    assert!(done(stage.octoflow(&["job", "list", "--user", "ann", "--state", "suspended"])).contains(&id));
    let trace = done(stage.octoflow(&["job", "trace", &id]));
    assert!(trace.contains("AccessGate.f.ann") && trace.contains("suspend"), "{trace}");
    done(stage.octoflow(&["job", "resume", &id, "--reason", "now"]));
    done(stage.octoflow(&["wait", &id]));
    let tree = done(stage.octoflow(&["get", &id]));
    assert!(!tree.contains("Failed"), "a gate that was passed has not failed: {tree}");
    let logs = done(stage.octoflow(&["logs", &id]));
    assert!(logs.contains("hello from inside"), "{logs}");
    assert!(done(stage.octoflow(&["plugin", "trace", &id])).contains("TemplateDecorator.f.ann"));
    assert!(done(stage.octoflow(&["job", "detail", &id])).contains("exitCode: 0"));
    done(stage.octoflow(&["feature", "disable", "f"]));
    done(stage.octoflow(&["delete", &id]));
    eventually("what came out goes with the job", || stage.task_set(&id).is_none());
    done(stage.octoflow(&["feature", "delete", "f", "g"]));
    assert_eq!(stage.octoflow(&["feature", "delete", "f"]).code, 3);
    assert_eq!(stage.octoflow(&["job", "detail", "nobody"]).code, 3);
}

#[test]
fn a_trial_calls_plugins_as_the_walk_does_and_stores_nothing() {
    let stage = Stage::new();
    let decorate = stage.plugins.on("decorate", |asked| {
        let mut job = asked.body["job"].clone();
        crate::stage::pod(&mut job)["containers"][0]["env"] = json!([{"name": "WHO", "value": "decorated"}]);
        crate::plugins::Reply::Json(job)
    });
    let feature = json!({"name": "f", "author": "ann", "enabled": true, "authorization": "abc=", "jobSelector": {"expression": "*"},
        "plugins": [{"pluginType": "TemplateDecorator", "callAddress": decorate},
            {"pluginType": "TemplateTranslator", "callAddress": "builtin:job-form"},
            {"pluginType": "AccessGate", "callAddress": "builtin:quota", "options": {"maxRunningPerUser": 1}}]});
    let file = stage.file("feature.json", feature.to_string());
    let form = json!({"kind": "JobForm", "roles": [{"name": "main", "image": "busybox", "command": "true"}]});
    let job = stage.file("job.json", form.to_string());
    done(stage.octoflow(&["feature", "register", &file]));
    let count = || stage.get("/job/count").payload["count"].clone();
    let before = count();
    // With the features of the server, and with those of a file.
    for words in
        [&["feature", "test", "--job", &job, "--call"][..], &["feature", "test", &file, "--job", &job, "--call"]]
    {
        let told = done(stage.octoflow(words));
        for part in
            ["AccessGate.f.ann: called", "pass: 0 of 1 jobs of user ann run", "this would run:", "value: decorated"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        let tried: Value = serde_json::from_str(&done(stage.octoflow(&[words, &["-o", "json"]].concat()))).unwrap();
        assert_eq!(
            (&tried["runs"]["kind"], tried["trace"].as_array().unwrap().len()),
            (&json!("TaskSet"), 3),
            "{tried:#}"
        );
    }
    let asked = stage.plugins.asked("decorate");
    assert_eq!(asked.len(), 4);
    for asked in &asked {
        assert_eq!(asked.head["authorization"], "Basic abc=");
        assert!(asked.head["idempotency-key"].contains("/TemplateDecorator.f.ann?trial="), "{:?}", asked.head);
    }
    stage.plugins.says("decorate", json!({"kind": "TaskSet"}));
    let failed = stage.octoflow(&["feature", "test", "--job", &job, "--call"]);
    assert_eq!(failed.code, 1, "{failed}");
    assert!(failed.out.contains("TemplateDecorator.f.ann"), "{failed}");
    assert_eq!(count(), before, "nothing is stored");
    // The quota remembers no job that was only tried.
    stage.plugins.on("decorate", |asked| crate::plugins::Reply::Json(asked.body["job"].clone()));
    let id = stage.submit(&form);
    stage.until(&id, "succeeded");
    let reader = json!({"forwho": "eve", "privileges": ["write_job"]});
    let token = stage.ask("POST", "/tokens", &reader).payload["token"].as_str().unwrap().to_owned();
    let body = json!({"job": crate::stage::submission(&form, json!({})), "features": [feature]});
    let denied = stage.ask_with("POST", "/job/trial", &[("token", &token), ("authorization", "")], &body);
    assert_eq!((denied.status, denied.code.as_str()), (403, "PERMISSION_DENIED"), "she may register no address");
}

#[test]
fn jobs_are_stopped_and_resumed_like_any_run_before_and_after_the_hand_over() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let held = stage.submit(&task_set("sleep 60"));
    stage.until(&held, "suspended");
    done(stage.octoflow(&["resume", &held]));
    stage.until(&held, "running");
    done(stage.octoflow(&["stop", &held]));
    stage.until(&held, "stopped");
    let other = stage.submit(&task_set("sleep 60"));
    stage.until(&other, "suspended");
    done(stage.octoflow(&["stop", &other]));
    stage.until(&other, "stopped");
}

#[test]
fn logs_that_are_followed_before_the_hand_over_show_what_runs_after_it() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let id = stage.submit(&task_set("echo first line; sleep 0.5; echo last line"));
    stage.until(&id, "suspended");
    let said = std::thread::scope(|scope| {
        let follower = scope.spawn(|| stage.octoflow(&["logs", "-f", &id]));
        std::thread::sleep(Duration::from_secs(1));
        assert!(!follower.is_finished(), "it waits for the run that comes out");
        done(stage.octoflow(&["resume", &id]));
        follower.join().unwrap()
    });
    let lines = done(said);
    let (first, last) = (lines.find("first line"), lines.find("last line"));
    assert!(first.is_some() && first < last, "{lines}");
    stage.until(&id, "succeeded");
    assert_eq!(done(stage.octoflow(&["logs", "-f", &id])), lines, "later they are the same");
}

#[test]
fn a_job_is_retried_by_its_id_when_it_is_over_and_walks_again() {
    let stage = Stage::new();
    let address = stage.plugins.says("gate", json!({"decision": "suspend", "reason": "full"}));
    stage.plugin("AccessGate", "g", &address);
    let marks = stage.path("marks");
    let id = stage.submit(&task_set(&format!("echo x >> {marks}; test $(wc -l < {marks}) -gt 1")));
    stage.until(&id, "suspended");
    let refused = stage.octoflow(&["retry", &id]);
    assert!(refused.code != 0 && refused.err.contains("the job is not over yet"), "{refused}");
    stage.plugins.says("gate", json!({"decision": "pass"}));
    done(stage.octoflow(&["resume", &id]));
    stage.until(&id, "failed");
    let options = stage.octoflow(&["retry", &id, "--restart-successful", "--node-field-selector", "phase=Failed"]);
    assert!(options.code != 0 && options.err.contains("there is nothing to choose"), "{options}");
    done(stage.octoflow(&["retry", &id]));
    eventually("it is done again", || stage.job(&id)["job"]["state"] == "succeeded");
    assert_eq!(std::fs::read_to_string(&marks).unwrap().lines().count(), 2, "the same command ran twice");
    let keys = stage.plugins.asked("gate").into_iter().map(|asked| asked.head["idempotency-key"].clone());
    let first = format!("{id}/AccessGate.g.test");
    assert_eq!(keys.collect::<Vec<_>>(), [first.clone(), first + "~1"], "the gate was asked another question");
    assert!(done(stage.octoflow(&["get", &format!("taskset/{id}")])).contains("Succeeded"));
    let over = stage.octoflow(&["retry", &id]);
    assert!(over.code != 0 && over.err.contains("the job has succeeded"), "{over}");
    done(stage.octoflow(&["delete", &id]));
    eventually("what came out goes with the job", || stage.task_set(&id).is_none());
}

#[test]
fn a_retry_may_make_another_kind_of_a_job() {
    let stage = Stage::new();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "jobID": "kinds1",
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "busybox", "command": ["sh", "-c", "false"]}]}}},
    });
    let id = stage.submit(&job);
    stage.until(&id, "failed");
    let of_job = "/apis/batch/v1/namespaces/default/jobs/kinds1";
    assert!(stage.object(of_job).is_some(), "{:#}", stage.trace(&id));
    stage.plugin("TemplateTranslator", "t", &stage.plugins.says("translate", task_set("true")));
    done(stage.octoflow(&["retry", &id]));
    eventually("it is done again", || stage.job(&id)["job"]["state"] == "succeeded");
    assert!(stage.task_set(&id).is_some() && stage.object(of_job).is_none(), "what came out before is gone");
}

#[test]
fn a_token_is_given_other_privileges() {
    let stage = Stage::new();
    done(stage.octoflow(&["token", "create", "ann", "--privilege", "read_job"]));
    let said = done(stage.octoflow(&["token", "update", "ann", "--privilege", "read-plugin,write_job"]));
    assert!(said.contains("read_feature") && said.contains("write_job"), "{said}");
    assert_eq!(stage.octoflow(&["token", "update", "ann", "--privilege", "fly"]).code, 2);
}

#[test]
fn a_job_and_its_features_run_here_without_a_server_and_are_linted() {
    let stage = Stage::new();
    let address = stage.plugins.on("decorate", |asked| {
        let mut job = asked.body["job"].clone();
        crate::stage::pod(&mut job)["containers"][0]["env"] = json!([{"name": "WHO", "value": "decorated"}]);
        crate::plugins::Reply::Json(job)
    });
    let feature = json!({"apiVersion": "octoflow.io/v1alpha1", "kind": "Feature", "metadata": {"name": "f"},
        "spec": {"author": "ann", "enabled": true, "jobSelector": {"expression": "*"},
            "plugins": [{"pluginType": "TemplateDecorator", "callAddress": address}]}});
    let job = json!({"apiVersion": "octoflow.io/v1alpha1", "kind": "SubmittedJob", "metadata": {"name": "j1"},
        "spec": {"userID": "u", "jobName": "n", "jobKind": "TaskSet", "job": task_set("test \"$WHO\" = decorated")}});
    let (feature, job) = (stage.file("f.json", feature.to_string()), stage.file("j.json", job.to_string()));
    done(stage.octoflow(&["lint", &feature, &job]));
    let apart = stage.path("apart");
    let said = stage.octoflow(&["run", &job, &feature, "--data-dir", &apart, "--isolation", "none"]);
    assert_eq!(said.code, 0, "{said}");
    assert!(done(stage.octoflow(&["schema", "SubmittedJob"])).contains("jobKind"));
    let mut broken: Value = serde_json::from_str(&std::fs::read_to_string(&feature).unwrap()).unwrap();
    broken["spec"]["plugins"][0]["pluginType"] = json!("Foo");
    assert_eq!(stage.octoflow(&["lint", &stage.file("b.json", broken.to_string())]).code, 6);
}

#[test]
fn what_a_life_hook_did_not_take_is_explained_after_the_end_too() {
    let mut stage = Stage::new();
    let address = stage.plugins.on("hook", |_| crate::plugins::Reply::Status(500, Value::Null));
    let selector = json!({"expression": "*", "states": ["succeeded"]});
    stage.feature(
        "deaf",
        json!([{"pluginType": "LifeHook", "callAddress": address, "tries": 1, "jobSelector": selector}]),
    );
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "succeeded");
    let told = |stage: &Stage| done(stage.octoflow(&["explain", &id]));
    eventually("the dead letter is explained", || told(&stage).contains("did not take `succeeded`"));
    let with_server = told(&stage);
    assert!(with_server.contains("LifeHook.deaf.test") && with_server.contains("hook replay"), "{with_server}");
    let node = done(stage.octoflow(&["explain", &id, "LifeHook.deaf.test"]));
    assert!(node.contains("did not take"), "{node}");
    stage.kill();
    assert_eq!(told(&stage), with_server, "without a server");
}
