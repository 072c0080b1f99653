//! Jobs run by `octoflow run`: how they end, what policies do, what is kept.

use std::fs;

use serde_json::json;

use crate::{
    job::{phase, phases, pod, shared, task},
    stage::{Stage, eventually, shows},
};

#[test]
fn vj_01_a_minimal_job_gets_its_defaults() {
    let stage = Stage::new();
    let tasks = json!([{"replicas": 3, "template": {"spec": {"containers": [
        {"name": "main", "image": "busybox", "command": ["true"]}]}}}]);
    let object = stage.run(0, &stage.job("small", tasks, json!({})));
    let (spec, first) = (&object["spec"], &object["spec"]["tasks"][0]);
    assert_eq!((&spec["queue"], &spec["maxRetry"], &spec["minAvailable"]), (&json!("default"), &json!(3), &json!(3)));
    assert_eq!((&first["name"], &first["minAvailable"]), (&json!("default0"), &json!(3)));
    assert_eq!(pod(&object, "small-default0-2")["phase"], "Succeeded");
}

#[test]
fn vj_04_three_pods_that_succeed_complete_it() {
    let stage = Stage::new();
    let object = stage.run(0, &stage.job("well", json!([task("a", 3, "sleep 0.3", json!({}))]), json!({})));
    assert_eq!(phases(&object), ["Pending", "Running", "Completed"]);
    assert_eq!(object["status"]["succeeded"], 3);
}

#[test]
fn vj_05_without_policies_it_runs_until_every_pod_has_ended() {
    let stage = Stage::new();
    let command = "sleep 0.$VC_TASK_INDEX; test $VC_TASK_INDEX != 2";
    let run = |name: &str, least: u32, code| {
        let tasks = json!([task("a", 3, command, json!({"minAvailable": least}))]);
        stage.run(code, &stage.job(name, tasks, json!({"minAvailable": 2, "plugins": {"env": []}})))
    };
    let enough = run("enough", 2, 0);
    assert_eq!(phase(&enough), "Completed");
    assert_eq!((&enough["status"]["succeeded"], &enough["status"]["failed"]), (&json!(2), &json!(1)));
    // The minimum of a task counts where the minima together do not exceed the job's.
    let tasks = json!([task("a", 3, command, json!({"minAvailable": 3}))]);
    let strict = stage.run(1, &stage.job("strict", tasks, json!({"minAvailable": 3, "plugins": {"env": []}})));
    assert_eq!(phase(&strict), "Failed");
    // Where they exceed it, the job's alone counts, as the original's code has it.
    assert_eq!(phase(&run("beyond", 3, 0)), "Completed");
}

#[test]
fn vj_06_enough_successes_complete_it_and_the_finished_pod_is_kept() {
    let stage = Stage::new();
    let command = "test $VC_TASK_INDEX = 0 || sleep 600";
    let more = json!({"minSuccess": 1, "plugins": {"env": []}});
    let object = stage.run(0, &stage.job("one", json!([task("a", 3, command, json!({}))]), more));
    assert_eq!(phase(&object), "Completed");
    assert_eq!(pod(&object, "one-a-0")["phase"], "Succeeded", "{object:#}");
    assert_eq!(pod(&object, "one-a-1")["phase"], "Absent");
    assert_eq!((&object["status"]["succeeded"], &object["status"]["running"]), (&json!(1), &json!(0)));
}

#[test]
fn vj_08_the_policy_of_a_task_comes_before_the_jobs() {
    let stage = Stage::new();
    let own = json!({"policies": [{"event": "PodFailed", "action": "RestartTask"}]});
    let once = "echo a >> /out/a; test $(wc -l < /out/a) -gt 1 || exit 1; until test -e /out/b; do sleep 0.05; done";
    let other = "until test $(wc -l < /out/a) = 2; do sleep 0.05; done; touch /out/b; exit 1";
    let tasks =
        json!([shared(&stage.here(), task("a", 1, once, own)), shared(&stage.here(), task("b", 1, other, json!({})))]);
    let file = stage.job("two", tasks, json!({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}));
    let child = stage.start(&["run", &file, "--timeout", "30s"]);
    eventually("the failure of the other task aborts it", || {
        let said = stage.octoflow(&["get", "two", "-o", "jsonpath={.status.state.phase}"]);
        said.out.trim() == "Aborted"
    });
    let object = stage.object("two");
    assert_eq!(object["status"]["retryCount"], 1, "{object:#}");
    assert_eq!(pod(&object, "two-a-0")["tries"], 2);
    assert_eq!(pod(&object, "two-b-0")["tries"], 1, "only the task that failed was restarted");
    let told = stage.ends(0, &["explain", "two"]).out;
    shows(&told, &["a policy aborted it because of PodFailed", "`octoflow resume two` begins attempt 3 of 3"]);
    stage.ends(0, &["terminate", "two"]);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
}

#[test]
fn vj_09_an_exit_code_restarts_that_pod_alone() {
    let stage = Stage::new();
    let command = "echo x >> /out/p$VC_TASK_INDEX; \
                   test $VC_TASK_INDEX = 0 && test $(wc -l < /out/p0) = 1 && exit 137; test $VC_TASK_INDEX != 1";
    let tasks = json!([shared(&stage.here(), task("a", 3, command, json!({})))]);
    let more =
        json!({"minAvailable": 2, "plugins": {"env": []}, "policies": [{"exitCode": 137, "action": "RestartPod"}]});
    let object = stage.run(0, &stage.job("codes", tasks, more));
    let tries = |name: &str| pod(&object, name)["tries"].as_u64();
    assert_eq!([tries("codes-a-0"), tries("codes-a-1"), tries("codes-a-2")], [Some(2), Some(1), Some(1)]);
    let status = &object["status"];
    assert_eq!((&status["version"], &status["retryCount"]), (&json!(0), &json!(1)), "{status:#}");
    assert_eq!(pod(&object, "codes-a-1")["terminated"]["exitCode"], 1, "nothing follows another code");
    // Both tries have a log, the last one under the pod's name.
    stage.ends(0, &["logs", "codes", "codes-a-0.0"]);
    stage.ends(0, &["logs", "codes", "codes-a-0"]);
}

#[test]
fn vj_12_a_completed_task_completes_the_job() {
    let stage = Stage::new();
    let own = json!({"policies": [{"event": "TaskCompleted", "action": "CompleteJob"}]});
    let tasks = json!([task("master", 1, "sleep 0.5", own), task("worker", 2, "sleep 600", json!({}))]);
    let object = stage.run(0, &stage.job("lead", tasks, json!({})));
    assert_eq!(phases(&object), ["Pending", "Running", "Completing", "Completed"]);
    assert_eq!(pod(&object, "lead-worker-0")["phase"], "Absent");
    assert_eq!(pod(&object, "lead-worker-0")["reason"], "Killed");
}

#[test]
fn vj_13_suspended_it_is_aborted_and_resumed_it_is_another_attempt() {
    let stage = Stage::new();
    let command = "echo x >> /out/began; until test -e /out/go; do sleep 0.05; done";
    let file = stage.job("held", json!([shared(&stage.here(), task("a", 2, command, json!({})))]), json!({}));
    let child = stage.start(&["run", &file, "-o", "json"]);
    let is = |wanted: &str| {
        eventually(&format!("it is {wanted}"), || {
            stage.octoflow(&["get", "held", "-o", "jsonpath={.status.state.phase}"]).out.trim() == wanted
        });
    };
    is("Running");
    shows(&stage.ends(0, &["suspend", "held"]).out, &["held suspended"]);
    is("Aborted");
    shows(&stage.ends(0, &["explain", "held"]).out, &["Aborted"]);
    shows(&stage.ends(0, &["resume", "vcjob/held"]).out, &["held resumed"]);
    is("Running");
    fs::write(stage.path("go"), "").unwrap();
    let said: crate::stage::Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 0, "{said}");
    let object = stage.object("held");
    assert_eq!(
        phases(&object),
        ["Pending", "Running", "Aborting", "Aborted", "Restarting", "Pending", "Running", "Completed"]
    );
    assert_eq!(object["status"]["retryCount"], 1);
    assert_eq!(fs::read_to_string(stage.path("began")).unwrap().lines().count(), 4);
}

/// A workflow that makes two Jobs, the second after the first.
fn of_jobs(second: &str) -> serde_json::Value {
    let step = |name: &str, command: &str| {
        let job = crate::job::job(name, json!([task("a", 2, command, json!({}))]), json!({}));
        json!({"name": name, "resource": {
            "action": "create",
            "successCondition": "status.state.phase == Completed",
            "failureCondition": "status.state.phase in (Failed, Terminated)",
            "manifest": job.to_string(),
        }})
    };
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "of-jobs"},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "dag": {"tasks": [
                {"name": "one", "template": "first"},
                {"name": "two", "template": "second", "dependencies": ["one"]},
            ]}},
            step("first", "sleep 0.3"),
            step("second", second),
        ]},
    })
}

#[test]
fn aw_25_jobs_are_nodes_of_a_workflow() {
    let stage = Stage::new();
    stage.ends(0, &["run", &stage.file("good.yaml", of_jobs("true").to_string())]);
    let (first, second) = (stage.object("vcjob/first"), stage.object("vcjob/second"));
    assert_eq!((phase(&first), phase(&second)), ("Completed", "Completed"));
    let at = |object: &serde_json::Value, field: &str| object["status"][field].as_str().unwrap().to_owned();
    assert!(at(&first, "finishedAt") <= at(&second, "startedAt"), "{first:#} {second:#}");
}

#[test]
fn aw_25_a_failed_job_fails_its_node() {
    let stage = Stage::new();
    let said = stage.octoflow(&["run", &stage.file("bad.yaml", of_jobs("exit 3").to_string())]);
    assert_eq!(said.code, 1, "{said}");
    assert_eq!(phase(&stage.object("vcjob/first")), "Completed");
    assert_eq!(phase(&stage.object("vcjob/second")), "Failed");
}
