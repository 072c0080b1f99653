//! `octoflow metrics`: what runs have published, from the data directory alone.

use crate::stage::Stage;

const EXAMPLE: &str = include_str!("../../../../examples/argo/metrics.yaml");

#[test]
fn metrics_of_all_runs_are_printed_and_add_up() {
    let stage = Stage::new();
    assert_eq!(stage.good(&["metrics"]).out, "", "nothing was run yet");
    let file = stage.file("metrics.yaml", EXAMPLE);
    for runs in 1..=2 {
        stage.good(&["run", "--quiet", &file]);
        let text = stage.good(&["metrics"]).out;
        for line in [
            "# HELP argo_workflows_example_runs How many runs there were, by how they ended".to_owned(),
            "# TYPE argo_workflows_example_runs counter".to_owned(),
            format!("argo_workflows_example_runs{{status=\"Succeeded\"}} {runs}"),
            format!("argo_workflows_example_sizes_bucket{{le=\"5\"}} {runs}"),
            format!("argo_workflows_example_sizes_bucket{{le=\"+Inf\"}} {}", runs * 3),
            format!("argo_workflows_example_sizes_sum {}", runs * 22),
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is missing in\n{text}");
        }
        assert!(text.contains("argo_workflows_example_step_seconds{size=\"12\"} "), "{text}");
        assert!(!text.contains("example_run_seconds"), "what follows a run ends with it:\n{text}");
    }
    let object = stage.json(&["get", "@latest", "-o", "json"]);
    assert!(object["status"]["resourcesDuration"]["cpu"].is_u64(), "{object:#}");
    let conditions = object["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|one| one["type"] != "MetricsError"), "{conditions:?}");
}

#[test]
fn metrics_stay_when_their_runs_are_deleted() {
    let stage = Stage::new();
    stage.good(&["run", "--quiet", &stage.file("metrics.yaml", EXAMPLE)]);
    let before = stage.good(&["metrics"]).out;
    stage.good(&["delete", "--all"]);
    assert_eq!(stage.good(&["metrics"]).out, before);
}

const FROM_TEMPLATE: &str = "
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: lib}
spec:
  entrypoint: main
  metrics:
    prometheus: [{name: lib_runs, help: Runs of the library, counter: {value: '1'}}]
  templates:
  - name: main
    steps: [[{name: only, template: leaf}]]
  - name: leaf
    container: {image: busybox, command: [sh, -c], args: ['true']}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: from-lib-}
spec:
  workflowTemplateRef: {name: lib}
";

#[test]
fn j23_the_second_run_of_a_template_shows_how_long_it_will_take() {
    let stage = Stage::new();
    let file = stage.file("lib.yaml", FROM_TEMPLATE);
    stage.good(&["run", "--quiet", &file]);
    assert!(!stage.good(&["get", "@latest"]).out.contains("EstimatedDuration"));
    stage.good(&["run", "--quiet", &file]);
    let said = stage.good(&["get", "@latest"]).out;
    assert!(said.contains("\nEstimatedDuration:   "), "{said}");
    let object = stage.json(&["get", "@latest", "-o", "json"]);
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let only = nodes.values().find(|node| node["displayName"] == "only").unwrap();
    assert!(only["estimatedDuration"].as_u64().is_some_and(|seconds| seconds >= 1), "{only:#}");
    assert!(only["hostNodeName"].is_string(), "{only:#}");
    assert!(stage.good(&["metrics"]).out.contains("argo_workflows_lib_runs 2\n"));
}
