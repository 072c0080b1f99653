//! Admission of flows.

use std::time::Instant;

use octoflow_manifest::Severity;
use serde_json::{Value, json};

use super::entry;
use crate::{
    admit::Catalog,
    dialects::{argo::refer::Reach, jobflow::admit},
    kinds::Kind,
};

/// A place without any object: flows refer to none before their jobs are made.
struct NoCatalog;

impl Catalog for NoCatalog {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        false
    }

    fn template(&self, _: Reach, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn template_names(&self, _: Reach, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fn flow(flows: Value) -> Value {
    json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "test"},
           "spec": {"flows": flows}})
}

/// Returns the errors as `path: message`.
fn errors(manifest: &Value) -> Vec<String> {
    let Err(problems) = admit::examine(manifest, &NoCatalog) else { return Vec::new() };
    let errors = problems.0.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(|problem| format!("{}: {}", problem.path.as_ref().unwrap(), problem.message)).collect()
}

#[test]
fn jf03_every_fault_of_a_graph_is_named_at_its_place() {
    let found = errors(&flow(json!([
        {"name": "a"}, entry("b", &["c"]), entry("c", &["b"]), entry("d", &["d"]), entry("e", &["aa"]), {"name": "a"}, {},
        entry("f", &["b", "g"]), entry("g", &["f"]),
    ])));
    assert_eq!(
        found,
        [
            "spec.flows[5].name: 'a' is already the name of flows[0]",
            "spec.flows[3].dependsOn.targets[0]: 'd' waits for itself",
            "spec.flows[4].dependsOn.targets[0]: no entry is called 'aa'",
            "spec.flows[6].name: an entry needs the name of its template",
            "spec.flows[1].dependsOn.targets: entries wait for each other in a circle: b->c->b",
            "spec.flows[7].dependsOn.targets: entries wait for each other in a circle: f->g->f",
        ]
    );
    assert_eq!(errors(&flow(json!([]))), ["spec.flows: a JobFlow needs at least one entry"]);
}

#[test]
fn jf04_wide_and_long_graphs_are_checked_in_linear_time() {
    let wide = (0..400).map(|at: usize| {
        let above = (at / 10).checked_sub(1).into_iter().flat_map(|layer| (0..10).map(move |up| layer * 10 + up));
        json!({"name": format!("j{at}"), "dependsOn": {"targets": above.map(|up| format!("j{up}")).collect::<Vec<_>>()}})
    });
    let manifest = flow(wide.collect());
    let began = Instant::now();
    assert_eq!(errors(&manifest), Vec::<String>::new());
    assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());
    let long = (0..100_000).map(|at: usize| {
        let targets: Vec<String> = at.checked_sub(1).map(|up| format!("j{up}")).into_iter().collect();
        json!({"name": format!("j{at}"), "dependsOn": {"targets": targets}, "retry": {"maxRetries": 1000}})
    });
    let mut manifest = flow(long.collect());
    let began = Instant::now();
    assert_eq!(errors(&manifest), Vec::<String>::new());
    manifest["spec"]["flows"][0]["dependsOn"]["targets"] = json!(["j99999"]);
    assert_eq!(errors(&manifest).len(), 1);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn jf05_both_groups_are_accepted_and_no_other() {
    let mut manifest = flow(json!([{"name": "a"}]));
    for (version, count) in [("flow.volcano.sh/v1alpha1", 0), ("batch.volcano.sh/v1alpha1", 0), ("flow/v2", 1), ("", 1)]
    {
        manifest["apiVersion"] = json!(version);
        assert_eq!(errors(&manifest).len(), count, "{version}");
    }
}

#[test]
fn jf24_names_and_words_of_the_seed_get_one_message_each() {
    let mut manifest = flow(json!([{"name": "A"}, entry("B", &["A"])]));
    manifest["spec"]["JobRetainPolicy"] = json!("retain/delete");
    let found = errors(&manifest);
    assert_eq!(found.len(), 3, "{found:#?}");
    manifest["spec"]["flows"] = json!([{"name": "a"}]);
    manifest["spec"]["JobRetainPolicy"] = json!("delete");
    assert_eq!(errors(&manifest), Vec::<String>::new());
    manifest["spec"]["jobRetainPolicy"] = json!("keep");
    assert!(errors(&manifest).contains(&"spec.jobRetainPolicy: `keep` is not one of: retain, delete".to_owned()));
    manifest["spec"]["jobRetainPolicy"] = json!("retain");
    assert_eq!(
        errors(&manifest),
        ["spec.JobRetainPolicy: jobRetainPolicy and JobRetainPolicy are the same field and contradict each other"]
    );
}

#[test]
fn jf25_names_of_jobs_must_not_be_too_long() {
    let name = "a".repeat(60);
    assert!(errors(&flow(json!([{"name": name}])))[0].contains("has 65 characters"));
    let name = "a".repeat(58);
    assert_eq!(errors(&flow(json!([{"name": name}]))), Vec::<String>::new());
    let found = errors(&flow(json!([{"name": name, "retry": {"maxRetries": 10}}])));
    assert!(found.len() == 1 && found[0].contains("has 66 characters"), "{found:?}");
}

#[test]
fn retries_patches_and_probes_are_checked() {
    let found = errors(&flow(json!([
        {"name": "a", "retry": {"maxRetries": 2, "backoff": "soon"}, "patch": {"jobSpec": {}, "spec": []}},
        {"name": "a-2"},
        {"name": "a-3"},
        {"name": "b", "dependsOn": {"probe": {
            "httpGetList": [{"path": "x", "httpHeader": {"value": "v"}}], "tcpSocketList": [{}],
            "taskStatusList": [{"taskName": "w"}]}}},
    ])));
    assert_eq!(
        found,
        [
            "spec.flows[0].retry.backoff: `soon` is not a time such as 10s, 5m or 1h30m",
            "spec.flows[0].patch.spec: jobSpec and spec are the same field; write one of them",
            "spec.flows[0].patch.spec: expected a mapping",
            "spec.flows[1].name: retry 2 of 'a' would have the name of its job",
            "spec.flows[3].dependsOn.probe: a probe is about the jobs of targets, and there are none",
            "spec.flows[3].dependsOn.probe.httpGetList[0].port: a port is required",
            "spec.flows[3].dependsOn.probe.httpGetList[0].path: path 'x' does not begin with `/`",
            "spec.flows[3].dependsOn.probe.httpGetList[0].httpHeader.name: a header needs a name",
            "spec.flows[3].dependsOn.probe.tcpSocketList[0].port: a port is required",
            "spec.flows[3].dependsOn.probe.taskStatusList[0].phase: a phase is required",
        ]
    );
    let port = json!([{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"],
                       "probe": {"tcpSocketList": [{"port": 70000}]}}}]);
    assert_eq!(errors(&flow(port)).len(), 1);
}
