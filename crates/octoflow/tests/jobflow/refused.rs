//! Flows that are refused: everything that is wrong at once, by name and place, and nothing is stored.

use serde_json::{Value, json};

use crate::stage::{Said, Stage, after, flow, path_of, shows, task, template, template_of};

/// Insists on all of these, in whatever order.
#[track_caller]
fn shows_all(said: &Said, parts: &[&str]) {
    for part in parts {
        assert!(said.out.contains(part), "{part} is missing in\n{said}");
    }
}

#[test]
fn jf03_cycles_unknown_targets_and_duplicates_are_refused_by_name() {
    let stage = Stage::with_server();
    let entries = json!([
        {"name": "a"}, after("b", &["c"]), after("c", &["b"]), after("d", &["d"]), after("e", &["nobody"]), {"name": "a"},
    ]);
    let wrong = flow("wrong", entries);
    let said = stage.ends(6, &["lint", &stage.manifests("wrong.yaml", std::slice::from_ref(&wrong))]);
    shows_all(
        &said,
        &[
            "b->c->b",
            "'d' waits for itself",
            "no entry is called 'nobody'",
            "'a' is already the name of flows[0]",
            "spec.flows[5].name",
        ],
    );
    let (status, body) = stage.ask("POST", path_of(&wrong), Some(&wrong));
    assert_eq!(status, 422, "{body:#}");
    let causes = body["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 4, "{body:#}");
    assert_eq!(stage.ask("GET", &format!("{}/wrong", path_of(&wrong)), None).0, 404, "nothing is stored");
}

#[test]
fn jf04_a_wide_graph_is_checked_in_linear_time() {
    let stage = Stage::new();
    let name = |layer: usize, at: usize| format!("n{layer}-{at}");
    let mut entries: Vec<Value> = Vec::new();
    for (layer, at) in (0..40).flat_map(|layer| (0..10).map(move |at| (layer, at))) {
        let before: Vec<String> = if layer == 0 { Vec::new() } else { (0..10).map(|at| name(layer - 1, at)).collect() };
        entries.push(json!({"name": name(layer, at), "dependsOn": {"targets": before}}));
    }
    // A check that follows every path would never end: there are 10^39 of them.
    let said = stage.ends(0, &["lint", &stage.manifests("wide.yaml", &[flow("wide", json!(entries))])]);
    assert!(!said.out.contains("error["), "{said}");
}

#[test]
fn jf25_names_that_would_be_too_long_are_refused() {
    let stage = Stage::new();
    let (whole, entry) = ("f".repeat(40), "t".repeat(30));
    let file = stage.manifests("long.yaml", &[template(&entry, "true"), flow(&whole, json!([{"name": entry}]))]);
    let said = stage.ends(6, &["run", &file]);
    shows(&said.err, &["its job would be called", "71 characters", "shorten the name of the flow or of the template"]);
    assert!(said.err.contains("nothing was run"), "{said}");
}

#[test]
fn probes_patches_and_policies_that_make_no_sense_are_refused_together() {
    let stage = Stage::new();
    let entries = json!([
        {"name": "a", "dependsOn": {"probe": {"tcpSocketList": [{"port": 80}]}}},
        {"name": "b", "dependsOn": {"targets": ["a"], "strategy": "some", "probe": {"httpGetList": [{"path": "x", "port": 70000}]}}},
        {"name": "c", "patch": {"jobSpec": {}, "spec": {}}, "retry": {"maxRetries": -1, "backoff": "soon"}},
    ]);
    let mut wrong = flow("wrong", entries);
    wrong["spec"]["jobRetainPolicy"] = json!("keep");
    let said = stage.ends(6, &["lint", &stage.manifests("wrong.yaml", &[wrong])]);
    shows_all(
        &said,
        &[
            "a probe is about the jobs of targets",
            "spec.flows[1].dependsOn.strategy",
            "spec.flows[1].dependsOn.probe.httpGetList[0].port",
            "jobSpec and spec are the same field",
            "spec.flows[2].retry.maxRetries",
            "spec.jobRetainPolicy",
        ],
    );
}

#[test]
fn lint_looks_at_the_jobs_that_a_flow_would_make() {
    let stage = Stage::new();
    let long = template_of("t", json!({"tasks": [task(&"x".repeat(50), 1, "true")]}));
    let probed = json!({"name": "c", "dependsOn": {"targets": ["a"], "probe": {"taskStatusList": [
        {"taskName": "mian", "phase": "Running"}]}}});
    let whole = flow(
        "a-flow-of-some-length",
        json!([
        {"name": "a"}, {"name": "b", "patch": {"jobSpec": {"minAvailable": 9}}}, probed, {"name": "t"}]),
    );
    let objects = [template("a", "true"), template("b", "true"), template("c", "true"), long, whole];
    let said = stage.ends(0, &["lint", &stage.manifests("flow.yaml", &objects)]);
    shows_all(
        &said,
        &[
            "the job of 'b' would be refused",
            "minAvailable",
            "no target has a task 'mian'",
            "did you mean `main`",
            "the job of 't' would be refused",
            "63 are the most",
        ],
    );
    assert_eq!(said.out.matches("warning[").count(), 3, "{said}");
    let strict = stage.octoflow(&["lint", "--strict", &stage.manifests("flow.yaml", &objects)]);
    assert_ne!(strict.code, 0, "{strict}");
}

#[test]
fn a_class_that_nobody_loaded_is_told_alike_on_a_fresh_directory_and_later_and_before_the_flow_runs() {
    let stage = Stage::new();
    let mut used = template("a", "true");
    used["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = json!("urgent");
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "alone"}, "spec": used["spec"],
    });
    let alone = stage.manifests("alone.yaml", &[job]);
    let refused = || shows(&stage.ends(6, &["run", &alone]).err, &["there is no PriorityClass `urgent`"]);
    refused();
    stage
        .ends(0, &["run", &stage.manifests("other.yaml", &[template("b", "true"), flow("o", json!([{"name": "b"}]))])]);
    refused();
    // Where nothing but the files is looked at, it is not known whether it is there.
    shows(&stage.ends(0, &["lint", &alone]).out, &["warning[OF1040]", "PriorityClass `urgent` is not loaded"]);
    let file = stage.manifests("flow.yaml", &[used, flow("f", json!([{"name": "a"}]))]);
    let linted = stage.ends(0, &["lint", &file]);
    assert_eq!(linted.out.matches("PriorityClass `urgent` is not loaded").count(), 1, "{linted}");
    let said = stage.octoflow(&["run", &file]);
    shows(&said.err, &["the job of 'a' would be refused", "there is no PriorityClass `urgent`"]);
}
