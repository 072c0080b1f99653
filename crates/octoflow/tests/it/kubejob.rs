//! Kubernetes' own Jobs without a server: `run`, `lint`, and resource templates that make them.

#![expect(clippy::print_stderr, reason = "a skipped seed is told loudly")]

use std::{fs, path::Path};

use serde_json::Value;

use crate::stage::Stage;

fn job(name: &str, spec: &str, script: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  {spec}
  template:
    spec:
      restartPolicy: Never
      containers:
      - {{name: main, image: busybox, command: [sh, -c, '{script}']}}
"
    )
}

fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True");
    found.unwrap_or_else(|| panic!("no condition {kind} in {conditions:#?}"))
}

#[test]
fn run_of_a_job_counts_its_pods_and_ends_with_complete() {
    let stage = Stage::new();
    let spec = "completions: 3\n  parallelism: 2\n  completionMode: Indexed";
    let text = job("counted", spec, "echo index $JOB_COMPLETION_INDEX");
    let file = stage.file("job.yaml", text);
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(object["status"]["succeeded"], 3);
    assert_eq!(object["status"]["completedIndexes"], "0-2");
    assert_eq!(condition(&object, "Complete")["reason"], "CompletionsReached");
    let said = stage.good(&["logs", "counted", "--no-prefix"]).out;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["index 0", "index 1", "index 2"]);
    assert_eq!(stage.json(&["get", "counted", "-o", "json"])["kind"], "Job");
}

#[test]
fn run_of_a_job_that_fails_too_often_fails_with_its_reason() {
    let stage = Stage::new();
    let file = stage.file("job.yaml", job("failing", "backoffLimit: 0", "exit 3"));
    let said = stage.octoflow(&["run", &file, "-o", "json"]);
    assert_eq!(said.code, 1, "{said}");
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(condition(&object, "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(object["status"]["failed"], 1);
}

/// The resource template of the seed, with a shorter calculation.
fn parent(kind: &str, script: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: parent}}
spec:
  entrypoint: pi-tmpl
  templates:
  - name: pi-tmpl
    resource:
      action: create
      successCondition: status.succeeded > 0
      failureCondition: status.failed > 3
      manifest: |
        apiVersion: {kind}
        metadata:
          generateName: pi-job-
        spec:
          template:
            metadata:
              name: pi
            spec:
              containers:
              - name: pi
                image: perl
                command: [sh, -c, '{script}']
              restartPolicy: Never
          backoffLimit: 4
    outputs:
      parameters:
      - {{name: job, valueFrom: {{jsonPath: '{{.metadata.name}}'}}}}
"
    )
}

const JOB: &str = "batch/v1\n        kind: Job";

#[test]
fn a_resource_template_makes_a_job_and_waits_until_it_succeeded() {
    let stage = Stage::new();
    let file = stage.file("parent.yaml", parent(JOB, "echo 3.14"));
    stage.good(&["lint", &file]);
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Succeeded", "{object:#}");
    let node = object["status"]["nodes"].as_object().unwrap().values().next().unwrap();
    let name = node["outputs"]["parameters"][0]["value"].as_str().unwrap();
    assert!(name.starts_with("pi-job-"), "{name}");
    let made = stage.json(&["get", name, "-o", "json"]);
    assert_eq!((&made["kind"], &made["status"]["succeeded"]), (&Value::from("Job"), &Value::from(1)));
    assert_eq!(stage.good(&["logs", name, "--no-prefix"]).out.trim(), "3.14");
}

#[test]
fn kinds_that_nothing_here_runs_are_refused_by_lint_and_before_a_run() {
    let stage = Stage::new();
    for (kind, told) in [
        ("apps/v1\n        kind: Deployment", "kind `Deployment` of group `apps` is not known here"),
        ("v1\n        kind: Service", "a Service cannot be created or changed here"),
        ("v1\n        kind: Pod", "a Pod is shown here"),
        ("batch/v2beta\n        kind: Jobb", "kind `Jobb` is not known here"),
    ] {
        for script in ["true", "echo {{workflow.name}}"] {
            let file = stage.file("parent.yaml", parent(kind, script));
            let linted = stage.octoflow(&["lint", &file]);
            assert_eq!(linted.code, 6, "{linted}");
            assert!(linted.out.contains(told) && linted.out.contains("OF1012"), "{linted}");
            let run = stage.octoflow(&["run", &file]);
            assert!(run.code == 6 && run.err.contains(told), "{run}");
        }
    }
    assert!(!stage.good(&["list"]).out.contains("parent"), "nothing was stored");
    // What a variable decides is not known before.
    let open = stage.file("open.yaml", parent("v1\n        kind: \"{{workflow.name}}\"", "true"));
    stage.good(&["lint", &open]);
}

#[test]
fn everything_wrong_with_a_job_is_told_by_lint() {
    let stage = Stage::new();
    let text = job("wrong", "completions: -1\n  backofLimit: 2", "true")
        .replace("restartPolicy: Never", "restartPolicy: Always");
    let said = stage.octoflow(&["lint", &stage.file("job.yaml", text)]);
    assert_eq!(said.code, 6, "{said}");
    for told in ["completions", "backofLimit", "restartPolicy"] {
        assert!(said.out.contains(told), "{told}\n{said}");
    }
}

/// The resource example of the seed, word for word; none when it is not there, which CI does not forgive.
fn seed() -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds/004_a5e7e3dc5334882c.txt");
    let Ok(text) = fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "the seed is required in CI: {} is missing", file.display());
        eprintln!("SKIPPED: the seed is not at {}", file.display());
        return None;
    };
    let example = text.split("```").find(|block| block.contains("name: pi-tmpl")).unwrap();
    Some(example.split_once('\n').unwrap().1.to_owned())
}

/// A workflow of this template.
fn workflow_of(template: &str) -> String {
    let mut lines = template.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let rest: String = lines.map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: parent}}\nspec:\n  entrypoint: pi-tmpl\n  \
         templates:\n  - {first}\n{rest}"
    )
}

#[test]
fn the_seeds_resource_example_is_told_what_is_wrong_with_it_and_runs_repaired() {
    let Some(text) = seed() else { return };
    the_example_is_refused_and_repaired(&text);
}

/// What the text of the seed says, as far as its manifest is concerned.
const EXAMPLE: &str = "name: pi-tmpl
resource:
    action: create
    successCondition: status.succeeded > 0
    failureCondition: status.failed > 3
    manifest: |
        apiVersion: batch/v1
        kind: Job
        metadata:
            generateName: pi-job-
        spec:
            template:
            metadata:
                name: pi
            spec:
                containers:
                - name: pi
                image: perl
                command: [\"perl\",  \"-Mbignum=bpi\", \"-wle\", \"print bpi(2000)\"]
                restartPolicy: Never
            backoffLimit: 4
";

#[test]
fn a_manifest_that_could_not_be_created_is_refused_by_lint_and_before_a_run() {
    the_example_is_refused_and_repaired(EXAMPLE);
}

fn the_example_is_refused_and_repaired(text: &str) {
    let stage = Stage::new();
    let file = stage.file("seed.yaml", workflow_of(text));
    let linted = stage.octoflow(&["lint", &file]);
    assert_eq!(linted.code, 6, "{linted}");
    for told in ["templates.pi-tmpl.resource.manifest: ", "spec.metadata", "spec.spec", "spec.template"] {
        assert!(linted.out.contains(told), "{told}\n{linted}");
    }
    let run = stage.octoflow(&["run", &file]);
    assert!(run.code == 6 && run.err.contains("spec.spec"), "{run}");
    assert!(!stage.good(&["list"]).out.contains("parent"), "nothing was stored");
    let repaired = text
        .replace("            metadata:\n                name: pi\n", "                metadata:\n                    name: pi\n")
        .replace("            spec:\n                containers:\n                - name: pi\n                image: perl\n                command:",
                 "                spec:\n                    containers:\n                    - name: pi\n                      image: perl\n                      command:")
        .replace("                restartPolicy", "                    restartPolicy")
        .replace(r#"["perl",  "-Mbignum=bpi", "-wle", "print bpi(2000)"]"#, "[echo, '3.14']");
    let file = stage.file("repaired.yaml", workflow_of(&repaired));
    stage.good(&["lint", &file]);
    let object = stage.json(&["run", &file, "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Succeeded", "{object:#}");
}
