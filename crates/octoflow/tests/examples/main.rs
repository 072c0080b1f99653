//! Every file under `examples/` runs, and ends as its first line promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::{fs, path::Path, process::Command};

use serde_json::Value;

#[test]
fn every_test_among_the_examples_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow")).arg("test").arg(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().count() > 10, "there are tests: {said}");
}

#[test]
fn every_workflow_runs_to_its_end() {
    run_all("argo", "/status/phase", "Succeeded");
}

#[test]
fn every_task_set_runs_to_its_end() {
    run_all("taskset", "/status/state", "Succeeded");
}

#[test]
fn every_volcano_job_runs_to_its_end() {
    run_all("volcano", "/status/state/phase", "Completed");
}

#[test]
fn every_job_flow_runs_to_its_end() {
    run_all("jobflow", "/status/state/phase", "Succeed");
}

#[test]
fn every_kubernetes_job_runs_to_its_end() {
    run_all("kubernetes-job", "/status/phase", "Complete");
}

/// Runs every example of a dialect, whose phase is at `verdict`, and is `good` where nothing else is meant.
fn run_all(dialect: &str, verdict: &str, good: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(dialect);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.to_string_lossy().ends_with(".test.yaml"));
    files.sort();
    assert!(!files.is_empty(), "there are examples");
    for file in files.into_iter().filter(|file| !is_kept_by_a_server(file)) {
        let scratch = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
            .args(["run", "-o", "json", "--quiet", "--timeout", "60s", "--data-dir"])
            .arg(scratch.path())
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let meant_to_fail =
            fs::read_to_string(&file).unwrap().lines().next().unwrap_or_default().contains("meant to fail");
        let expected = if meant_to_fail { "Failed" } else { good };
        let object: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}: {said}", file.display()));
        assert_eq!(object.pointer(verdict).and_then(Value::as_str), Some(expected), "{}: {said}", file.display());
        assert_eq!(output.status.code(), Some(i32::from(meant_to_fail)), "{}: {said}", file.display());
    }
}

/// Schedules and bindings do not run by themselves.
fn is_kept_by_a_server(file: &Path) -> bool {
    let text = fs::read_to_string(file).expect("an example can be read");
    text.contains("kind: CronWorkflow") || text.contains("kind: CronJob") || text.contains("kind: WorkflowEventBinding")
}

#[test]
fn every_example_makes_sense() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = ["argo", "kubernetes-job"].map(|dialect| folder.join(dialect));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let kept: Vec<_> = files.filter(|file| is_kept_by_a_server(file)).collect();
    assert!(kept.len() >= 4, "there are examples of schedules and bindings");
    for file in kept {
        let octoflow = |args: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_octoflow")).args(args).arg(&file).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
            said
        };
        octoflow(&["lint", "--strict"]);
        if fs::read_to_string(&file).unwrap().contains("kind: Cron") {
            let listed = octoflow(&["cron", "preview", "--count", "3"]);
            assert_eq!(listed.lines().count(), 5, "{listed}");
        }
    }
}
