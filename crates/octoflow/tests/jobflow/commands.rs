//! What the command line does with flows and templates.

use serde_json::json;

use crate::stage::{Stage, after, flow, shows, task, template, template_of};

#[test]
fn jf23_templates_and_jobs_are_converted_to_each_other() {
    let stage = Stage::new();
    let one = template("a", "true");
    let whole = flow("test", json!([{"name": "a"}]));
    let said = stage.ends(0, &["convert", &stage.manifests("a.yaml", &[one.clone(), whole])]);
    shows(&said.err, &["a JobFlow is not converted"]);
    let job = stage.ends(0, &["convert", "-o", "json", &stage.manifests("a.yaml", std::slice::from_ref(&one))]).out;
    let read: serde_json::Value = serde_json::from_str(&job).unwrap();
    assert_eq!((&read["kind"], &read["spec"]), (&json!("Job"), &one["spec"]));
    let again = stage.ends(0, &["convert", "-o", "json", &stage.file("job.json", &job)]).out;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again).unwrap(), one, "twice is the identity");
    // A job that has run becomes a template without identity and status, which is not run.
    stage.ends(0, &["run", &stage.file("job.json", &job)]);
    let ran = stage.ends(0, &["get", "a", "-o", "json"]).out;
    let back = stage.ends(0, &["convert", &stage.file("ran.json", ran)]).out;
    assert!(back.contains("kind: JobTemplate") && !back.contains("uid") && !back.contains("status"), "{back}");
    let said = stage.ends(6, &["run", &stage.file("back.yaml", back)]);
    shows(&said.err, &["there is no Workflow", "no JobFlow and no"]);
    stage.ends(6, &["convert", &stage.manifests("flow.yaml", &[flow("test", json!([{"name": "a"}]))])]);
}

#[test]
fn the_tree_and_the_logs_of_a_flow_are_those_of_its_jobs() {
    let stage = Stage::new();
    let two = template_of("b", json!({"tasks": [task("worker", 2, "echo from b")]}));
    stage.run(0, &[template("a", "echo from a"), two, flow("test", json!([{"name": "a"}, after("b", &["a"])]))]);
    let tree = stage.ends(0, &["get", "test"]).out;
    shows(&tree, &["✔ test", "├─✔ a", "└─✔ b", "worker-1", "test-b-worker-1"]);
    let logs = stage.ends(0, &["logs", "test"]).out;
    assert_eq!((logs.matches("from a").count(), logs.matches("from b").count()), (1, 2), "{logs}");
    let logs = stage.ends(0, &["logs", "test", "a"]).out;
    assert!(logs.contains("from a") && !logs.contains("from b"), "{logs}");
    let logs = stage.ends(0, &["logs", "test-b", "worker-1"]).out;
    assert_eq!(logs.matches("from b").count(), 1, "{logs}");
    let said = stage.octoflow(&["logs", "test", "c"]);
    assert_ne!(said.code, 0);
    shows(&said.err, &["has made nothing called `c`"]);
}

#[test]
fn a_job_and_a_flow_are_nodes_of_a_workflow() {
    let stage = Stage::with_server();
    stage.create(&[template("a", &stage.marks("flow"))]);
    let job = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"generateName": "step-"},
                     "spec": template("x", &stage.marks("job"))["spec"]});
    let mut whole = flow("step", json!([{"name": "a"}]));
    whole["metadata"] = json!({"generateName": "step-"});
    let resource = |object: &serde_json::Value, good: &str, bad: &str| json!({"action": "create", "manifest": object.to_string(), "successCondition": good, "failureCondition": bad});
    let workflow = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "outer"},
    "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "job", "template": "job"}], [{"name": "flow", "template": "flow"}]]},
        {"name": "job", "resource": resource(&job, "status.state.phase == Completed", "status.state.phase == Failed")},
        {"name": "flow", "resource": resource(&whole, "status.state.phase == Succeed", "status.state.phase == Failed")},
    ]}});
    let file = stage.manifests("outer.yaml", &[workflow]);
    let said = stage.ends(0, &["submit", &file, "--wait"]);
    assert_eq!(stage.marked(), ["job", "flow"], "{said}");
}

#[test]
fn the_log_of_a_flow_is_printed_while_it_runs() {
    let stage = Stage::new();
    let whole = flow("test", json!([{"name": "a"}, after("b", &["a"])]));
    let objects = [template("a", "echo from a"), template("b", "echo from b"), whole];
    let said = stage.ends(0, &["run", &stage.manifests("run.yaml", &objects), "--log", "--quiet"]);
    // Jobs that end at nearly the same time may be told in any order.
    shows(&said.out, &["a/test-a-main-0 | from a"]);
    shows(&said.out, &["b/test-b-main-0 | from b"]);

    let stage = Stage::with_server();
    stage.create(&objects[..2]);
    let file = stage.manifests("flow.yaml", &objects[2..]);
    let said = stage.ends(0, &["submit", &file, "--log"]);
    // Jobs that end at nearly the same time may be told in any order.
    shows(&said.out, &["a/test-a-main-0 | from a"]);
    shows(&said.out, &["b/test-b-main-0 | from b"]);
}

#[test]
fn the_last_lines_of_a_pod_that_failed_a_flow_are_shown() {
    let stage = Stage::new();
    let whole = flow("test", json!([{"name": "a"}, after("b", &["a"])]));
    let file = stage.manifests("run.yaml", &[template("a", "echo the reason; exit 3"), template("b", "true"), whole]);
    let said = stage.ends(1, &["run", &file]);
    shows(&said.err, &["the reason", "octoflow logs test-a main-0"]);
    shows(&stage.ends(0, &["logs", "test-a", "main-0"]).out, &["the reason"]);
    let wide = Stage::new();
    let said = wide.ends(1, &["run", &file, "-o", "wide"]);
    shows(&said.out, &["main-0"]);
}

#[test]
fn an_exported_flow_holds_its_jobs() {
    let stage = Stage::new();
    let retried = json!({"name": "b", "dependsOn": {"targets": ["a"]}, "retry": {"maxRetries": 1, "backoff": "10ms"}});
    let once = format!("echo from b; [ -e {0} ] && exit 0; touch {0}; exit 1", stage.path("first").display());
    stage.run(0, &[template("a", "echo from a"), template("b", &once), flow("test", json!([{"name": "a"}, retried]))]);
    let file = stage.path("test.octoflow").display().to_string();
    stage.ends(0, &["export", "test", "-o", &file]);
    shows(&stage.ends(0, &["open", &file]).out, &["✔ test", "✔ a", "main-0", "b (try 1)"]);
    let logs = stage.ends(0, &["open", &file, "logs"]).out;
    assert_eq!((logs.matches("from a").count(), logs.matches("from b").count()), (1, 2), "{logs}");
    let logs = stage.ends(0, &["open", &file, "logs", "a"]).out;
    assert!(logs.contains("a/test-a-main-0 | from a") && !logs.contains("from b"), "{logs}");
    assert_eq!(stage.ends(0, &["diff", "test", &file]).out, "the runs do not differ\n");
}

#[test]
fn flows_and_their_jobs_are_listed_waited_for_and_described_by_schemas() {
    let stage = Stage::with_server();
    stage.create(&[template("a", &stage.waits("go")), flow("test", json!([{"name": "a"}]))]);
    stage.until_status("test", "a runs", |status| status["runningJobs"] == json!(["test-a"]));
    let listed = stage.ends(0, &["list", "--kind", "jf", "--no-headers"]).out;
    assert!(listed.lines().count() == 1 && listed.contains("test") && listed.contains("Running"), "{listed}");
    let listed = stage.ends(0, &["list", "--kind", "vcjob", "--no-headers"]).out;
    assert!(listed.lines().count() == 1 && listed.contains("test-a"), "{listed}");
    let late = stage.octoflow(&["wait", "test", "--timeout", "200ms"]);
    assert_ne!(late.code, 0, "{late}");
    stage.say("go");
    stage.ends(0, &["wait", "test"]);
    stage.ends(0, &["wait", "vcjob/test-a"]);
    let said = stage.ends(0, &["watch", "test"]);
    shows(&said.out, &["test", "Succeed"]);
    shows(&said.err, &["JobFlow test succeeded"]);
    for words in [&["retry", "test"][..], &["retry", "test", "--from", "a"], &["retry", "test", "--node", "a"]] {
        let refused = stage.ends(7, words);
        shows(&refused.err, &["resubmit makes a new one"]);
        assert!(!refused.err.contains("--node NODE"), "nothing of a flow can be chosen: {refused}");
    }
    shows(&stage.ends(0, &["schema", "JobFlow"]).out, &["jobRetainPolicy"]);
    shows(&stage.ends(0, &["schema", "JobTemplate"]).out, &["minAvailable"]);
}

#[test]
fn templates_queues_and_a_flow_are_run_from_one_file() {
    let stage = Stage::new();
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"},
                       "spec": {"weight": 1}});
    let mut a = template("a", "true");
    a["spec"]["queue"] = json!("research");
    let done = stage.run(0, &[flow("test", json!([{"name": "a"}])), queue, a]);
    assert_eq!(done["status"]["state"]["phase"], "Succeed");
    let job: serde_json::Value = serde_json::from_str(&stage.ends(0, &["get", "test-a", "-o", "json"]).out).unwrap();
    assert_eq!(job["spec"]["queue"], "research");
}
